-- SPDX-License-Identifier: MIT
-- A host of libqretention in Lua (LuaJIT), through its ffi.
--
--     luajit retention.lua CONNINFO [CYCLES [STOP_AFTER_MS [NAME=VALUE ...]]]
--
-- Sweeps until SIGINT or SIGTERM, for CYCLES cycles (0: no limit), or until another thread stops it
-- after STOP_AFTER_MS milliseconds (0: never). NAME=VALUE sets an option of the library.
--
-- Lua has neither signal handlers nor threads. The signals come through a descriptor that is polled
-- beside the library's, as any host with a loop of its own would do it; the thread is the C
-- library's, and what it runs is qret_stop itself.
local ffi = require("ffi")

-- Compiled code cannot be called back into, and every call here may be.
require("jit").off(true, true)

ffi.cdef [[
struct qret_ctx;
struct qret_poll_fd { int32_t fd, events; };
struct qret_log_record {
	uint32_t size; int32_t level; const char *event, *text; int64_t suppressed;
};
struct qret_metric {
	uint32_t size; int32_t kind; const char *name, *unit, *help, *phase; double value;
};
/* The first 144 bytes of the report: all that this host wants to know. */
struct report {
	uint32_t size; int32_t outcome;
	int64_t clock_us, queues, partitions, steps, segments_deleted, messages_deleted, txns_purged,
	        max_wait_evicted, partitions_deleted, metrics_purged, events_deleted, deliveries_deleted,
	        items_failed, items_locked, items_pinned, round_trips, elapsed_us;
};
typedef void (*qret_log_fn)(void *user_data, const struct qret_log_record *record);
typedef void (*qret_metric_fn)(void *user_data, const struct qret_metric *metric);
int qret_ctx_new(struct qret_ctx **ret_ctx);
void qret_ctx_free(struct qret_ctx *ctx);
int qret_load_env(struct qret_ctx *ctx);
int qret_set_option(struct qret_ctx *ctx, const char *name, const char *value);
int qret_set_log(struct qret_ctx *ctx, int32_t max_level, qret_log_fn fn, void *user_data,
                 void *free_fn);
int qret_set_metrics(struct qret_ctx *ctx, qret_metric_fn fn, void *user_data, void *free_fn);
int qret_connect(struct qret_ctx *ctx, const char *conninfo);
int qret_cycle_begin(struct qret_ctx *ctx);
int qret_cycle_process(struct qret_ctx *ctx);
int qret_cycle_get_report(struct qret_ctx *ctx, struct report *ret_report);
int qret_poll_fds(struct qret_ctx *ctx, struct qret_poll_fd *ret_fds, uint32_t capacity,
                  uint32_t *ret_count);
int64_t qret_deadline_us(struct qret_ctx *ctx);
int64_t qret_next_cycle_us(struct qret_ctx *ctx);
int64_t qret_now_us(void);
void qret_stop(struct qret_ctx *ctx);
const char *qret_error_message(struct qret_ctx *ctx);
int32_t qret_error_is_retryable(struct qret_ctx *ctx);

/* The system's, as Linux has them. */
struct pollfd { int fd; short events, revents; };
int poll(struct pollfd *fds, unsigned long count, int timeout_ms);
typedef struct { unsigned long bits[16]; } sigset_t;
int sigemptyset(sigset_t *set);
int sigaddset(sigset_t *set, int number);
int sigprocmask(int how, const sigset_t *set, sigset_t *old);
int signalfd(int fd, const sigset_t *mask, int flags);
struct sigevent {
	void *value; int signo, notify;
	void (*notify_function)(struct qret_ctx *); void *attributes; char room[32];
};
struct itimerspec { long interval_s, interval_ns, value_s, value_ns; };
int timer_create(int clock, struct sigevent *event, void **timer);
int timer_settime(void *timer, int flags, const struct itimerspec *value, struct itimerspec *old);
]]

local DONE, MORE, WAIT, STOPPED = 0, 1, 2, 4
local LOG_INFO = 3
local POLLIN, POLLOUT, READ, WRITE = 1, 4, 1, 2
local SIGINT, SIGTERM, SIG_BLOCK = 2, 15, 0
local CLOCK_MONOTONIC, SIGEV_THREAD = 1, 2
local NEVER = 0x7fffffffffffffffLL

local lib = ffi.load("qretention.so.0")
local C = ffi.C

local function signal_descriptor()
	local set = ffi.new("sigset_t")
	C.sigemptyset(set)
	C.sigaddset(set, SIGINT)
	C.sigaddset(set, SIGTERM)
	C.sigprocmask(SIG_BLOCK, set, nil)
	return C.signalfd(-1, set, 0)
end

-- The C library starts a thread when the time has come; it calls qret_stop with the context.
local function stop_later(ctx, after_ms)
	local event, timer = ffi.new("struct sigevent"), ffi.new("void *[1]")
	local value = ffi.new("struct itimerspec")
	event.value, event.notify, event.notify_function = ctx, SIGEV_THREAD, lib.qret_stop
	value.value_s, value.value_ns = math.floor(after_ms / 1000), after_ms % 1000 * 1000000
	assert(C.timer_create(CLOCK_MONOTONIC, event, timer) == 0, "no timer")
	C.timer_settime(timer[0], 0, value, nil)
	return true
end

local Host = {}
Host.__index = Host

function Host.new(conninfo, options)
	local out = ffi.new("struct qret_ctx *[1]")
	assert(lib.qret_ctx_new(out) == DONE, "out of memory")
	local host = setmetatable({ ctx = out[0], stopping = false, logs = 0, metrics = 0 }, Host)
	host.signals = signal_descriptor()
	-- An error must not leave a callback, so each is wrapped.
	host.on_log = ffi.cast("qret_log_fn", function(_, record)
		pcall(function()
			host.logs = host.logs + 1
			io.stderr:write(ffi.string(record.text), "\n")
		end)
	end)
	host.on_metric = ffi.cast("qret_metric_fn", function() host.metrics = host.metrics + 1 end)
	host:check(lib.qret_set_log(host.ctx, LOG_INFO, host.on_log, nil, nil))
	host:check(lib.qret_set_metrics(host.ctx, host.on_metric, nil, nil))
	host:check(lib.qret_load_env(host.ctx))
	for _, option in ipairs(options) do
		local name, value = option:match("^([^=]*)=(.*)$")
		assert(name, "an option is NAME=VALUE")
		host:check(lib.qret_set_option(host.ctx, name, value))
	end
	host:check(lib.qret_connect(host.ctx, conninfo))
	return host
end

function Host:message()
	return ffi.string(lib.qret_error_message(self.ctx))
end

function Host:check(code)
	if code ~= DONE then
		error(self:message(), 0)
	end
end

function Host:stop()
	self.stopping = true
	lib.qret_stop(self.ctx)
end

-- Sleeps until the library, a signal or the time wakes it. Says whether it was the library.
function Host:poll(until_us)
	local count = ffi.new("uint32_t[1]")
	local wanted = ffi.new("struct qret_poll_fd[32]")
	local fds = ffi.new("struct pollfd[33]")
	self:check(lib.qret_poll_fds(self.ctx, wanted, 32, count))
	local own = count[0]
	for i = 0, own - 1 do
		local read = bit.band(wanted[i].events, READ) ~= 0 and POLLIN or 0
		local write = bit.band(wanted[i].events, WRITE) ~= 0 and POLLOUT or 0
		fds[i].fd, fds[i].events = wanted[i].fd, read + write
	end
	-- A signal that was heard is left in its descriptor, which would end every further sleep.
	fds[own].fd, fds[own].events = self.stopping and -1 or self.signals, POLLIN
	local timeout_ms = -1
	if until_us ~= NEVER then
		local left_ms = tonumber(until_us - lib.qret_now_us()) / 1000
		timeout_ms = left_ms <= 0 and 0 or math.min(math.ceil(left_ms), 0x7fffffff)
	end
	local ready = C.poll(fds, own + 1, timeout_ms)
	if fds[own].revents ~= 0 then
		self:stop()
		ready = ready - 1
	end
	return ready > 0
end

-- The cycle that has begun.
function Host:cycle()
	while true do
		local code = lib.qret_cycle_process(self.ctx)
		if code == WAIT then
			self:poll(lib.qret_deadline_us(self.ctx))
		elseif code ~= MORE then
			return code
		end
	end
end

function Host:report()
	local report = ffi.new("struct report")
	report.size = ffi.sizeof(report)
	self:check(lib.qret_cycle_get_report(self.ctx, report))
	return report
end

-- Outside a cycle the library waits for nothing but a stop.
function Host:sleep()
	while not self.stopping and lib.qret_next_cycle_us(self.ctx) > lib.qret_now_us() do
		if self:poll(lib.qret_next_cycle_us(self.ctx)) then
			self.stopping = true
		end
	end
end

function Host:close()
	lib.qret_ctx_free(self.ctx)
	self.on_log:free()
	self.on_metric:free()
end

-- Cycles until a stop, or until an error that only a person can mend.
local function sweep(host, most)
	local cycles = 0
	while not host.stopping and (most == 0 or cycles < most) do
		local code = lib.qret_cycle_begin(host.ctx)
		if code == STOPPED then
			host.stopping = true
			break -- before there was a cycle to tell of
		end
		local begun = code == DONE
		if begun then
			code = host:cycle()
		end
		if code < 0 then
			io.stderr:write("error: ", host:message(), "\n")
			if not begun or lib.qret_error_is_retryable(host.ctx) == 0 then
				return code
			end
		end
		if code == STOPPED then
			host.stopping = true
		else
			cycles = cycles + 1
		end
		local report = host:report()
		print(string.format("cycle outcome=%d segments=%d messages=%d size=%d", report.outcome,
			tonumber(report.segments_deleted), tonumber(report.messages_deleted), report.size))
		io.stdout:flush()
		if most == 0 or cycles < most then
			host:sleep()
		end
	end
	print(string.format("end cycles=%d logs=%d metrics=%d stopped=%d", cycles, host.logs, host.metrics,
		host.stopping and 1 or 0))
	return DONE
end

local function number(word)
	return assert(tonumber(word or 0), "CYCLES and STOP_AFTER_MS are numbers")
end

local function main(conninfo, most, stop_after_ms, ...)
	local cycles, after_ms = number(most), number(stop_after_ms)
	local host = Host.new(conninfo or "", { ... })
	local timer = after_ms > 0 and stop_later(host.ctx, after_ms)
	local code = sweep(host, cycles)
	-- With a timer that may be about to run qret_stop, the context is left to the end of the process.
	if not timer then
		host:close()
	end
	return code == DONE and 0 or 1
end

local ended, code = pcall(main, ...)
if not ended then
	io.stderr:write("error: ", tostring(code), "\n")
end
os.exit(ended and code or 1)
