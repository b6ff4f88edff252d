// SPDX-License-Identifier: MIT
// A host of libqretention in JavaScript (Node.js), through koffi.
//
//     node retention.js CONNINFO [CYCLES [STOP_AFTER_MS [NAME=VALUE ...]]]
//
// Sweeps until SIGINT or SIGTERM, for CYCLES cycles (0: no limit), or until another thread stops it
// after STOP_AFTER_MS milliseconds (0: never). NAME=VALUE sets an option of the library.
//
// qret_wait sleeps on one of koffi's threads, so the event loop goes on meanwhile: timers, sockets
// and signal handlers run. Until it has come back, no other call than qret_stop is made on the
// context.
"use strict";

const koffi = require("koffi");
const { Worker, isMainThread, workerData } = require("node:worker_threads");

const DONE = 0, MORE = 1, WAIT = 2, STOPPED = 4;
const LOG_INFO = 3;

const lib = koffi.load("libqretention.so.0");

// Another thread: it is given the context's address and does nothing but stop it.
if (!isMainThread) {
  const stop = lib.func("void qret_stop(uintptr_t ctx)");
  setTimeout(() => {
    Atomics.store(workerData.stopping, 0, 1);
    stop(workerData.ctx);
  }, workerData.afterMs);
  return;
}

koffi.opaque("qret_ctx");
koffi.struct("qret_log_record", {
  size: "uint32_t", level: "int32_t", event: "const char *", text: "const char *",
  suppressed: "int64_t",
});
koffi.struct("qret_metric", {
  size: "uint32_t", kind: "int32_t", name: "const char *", unit: "const char *",
  help: "const char *", phase: "const char *", value: "double",
});
// The first 144 bytes of the report: all that this host wants to know.
const Report = koffi.struct("qret_cycle_report", {
  size: "uint32_t", outcome: "int32_t", clock_us: "int64_t", queues: "int64_t",
  partitions: "int64_t", steps: "int64_t", segments_deleted: "int64_t",
  messages_deleted: "int64_t", txns_purged: "int64_t",
  max_wait_evicted: "int64_t", partitions_deleted: "int64_t", metrics_purged: "int64_t",
  events_deleted: "int64_t", deliveries_deleted: "int64_t", items_failed: "int64_t",
  items_locked: "int64_t", items_pinned: "int64_t", round_trips: "int64_t", elapsed_us: "int64_t",
});
const LogFn = koffi.proto("void qret_log_fn(void *user_data, const qret_log_record *record)");
const MetricFn = koffi.proto("void qret_metric_fn(void *user_data, const qret_metric *metric)");

const qret = {
  ctxNew: lib.func("int qret_ctx_new(_Out_ qret_ctx **ret_ctx)"),
  ctxFree: lib.func("void qret_ctx_free(qret_ctx *ctx)"),
  loadEnv: lib.func("int qret_load_env(qret_ctx *ctx)"),
  setOption: lib.func("int qret_set_option(qret_ctx *ctx, const char *name, const char *value)"),
  setLog: lib.func("int qret_set_log(qret_ctx *ctx, int32_t max_level, qret_log_fn *fn,"
    + " void *user_data, void *free_fn)"),
  setMetrics: lib.func("int qret_set_metrics(qret_ctx *ctx, qret_metric_fn *fn, void *user_data,"
    + " void *free_fn)"),
  connect: lib.func("int qret_connect(qret_ctx *ctx, const char *conninfo)"),
  begin: lib.func("int qret_cycle_begin(qret_ctx *ctx)"),
  process: lib.func("int qret_cycle_process(qret_ctx *ctx)"),
  getReport: lib.func("int qret_cycle_get_report(qret_ctx *ctx,"
    + " _Inout_ qret_cycle_report *ret_report)"),
  wait: lib.func("int qret_wait(qret_ctx *ctx)"),
  nextCycleUs: lib.func("int64_t qret_next_cycle_us(qret_ctx *ctx)"),
  nowUs: lib.func("int64_t qret_now_us()"),
  stop: lib.func("void qret_stop(qret_ctx *ctx)"),
  errorMessage: lib.func("const char *qret_error_message(qret_ctx *ctx)"),
  errorIsRetryable: lib.func("int32_t qret_error_is_retryable(qret_ctx *ctx)"),
};

class Host {
  constructor(conninfo, options) {
    const out = [null];
    if (qret.ctxNew(out) !== DONE)
      throw new Error("out of memory");
    this.ctx = out[0];
    this.flag = new Int32Array(new SharedArrayBuffer(4)); // both threads may set it
    this.logs = 0;
    this.metrics = 0;
    this.logFn = koffi.register(
      (_data, record) => this.onLog(koffi.decode(record, "qret_log_record")), koffi.pointer(LogFn));
    this.metricFn = koffi.register(() => { this.metrics++; }, koffi.pointer(MetricFn));
    this.check(qret.setLog(this.ctx, LOG_INFO, this.logFn, null, null));
    this.check(qret.setMetrics(this.ctx, this.metricFn, null, null));
    this.check(qret.loadEnv(this.ctx));
    for (const option of options) {
      const at = option.indexOf("=");
      if (at < 0)
        throw new Error("an option is NAME=VALUE");
      this.check(qret.setOption(this.ctx, option.slice(0, at), option.slice(at + 1)));
    }
    this.check(qret.connect(this.ctx, conninfo));
  }

  check(code) {
    if (code !== DONE)
      throw new Error(qret.errorMessage(this.ctx));
  }

  onLog(record) {
    this.logs++;
    console.error(record.text);
  }

  get stopping() {
    return Atomics.load(this.flag, 0) === 1;
  }

  stop() {
    Atomics.store(this.flag, 0, 1);
    qret.stop(this.ctx);
  }

  wait() {
    return new Promise((resolve, reject) => {
      qret.wait.async(this.ctx, (error, code) => (error ? reject(error) : resolve(code)));
    });
  }

  // The cycle that has begun.
  async cycle() {
    for (;;) {
      const code = qret.process(this.ctx);
      if (code === WAIT)
        await this.wait();
      else if (code === MORE)
        await new Promise(setImmediate);
      else
        return code;
    }
  }

  report() {
    const report = { size: koffi.sizeof(Report) };
    this.check(qret.getReport(this.ctx, report));
    return report;
  }

  async sleep() {
    while (!this.stopping && qret.nextCycleUs(this.ctx) > qret.nowUs())
      await this.wait();
  }

  close() {
    qret.ctxFree(this.ctx);
    koffi.unregister(this.logFn);
    koffi.unregister(this.metricFn);
  }
}

// Cycles until a stop, or until an error that only a person can mend.
async function sweep(host, most) {
  let cycles = 0;
  while (!host.stopping && (most === 0 || cycles < most)) {
    let code = qret.begin(host.ctx);
    if (code === STOPPED)
      break; // before there was a cycle to tell of
    const begun = code === DONE;
    if (begun)
      code = await host.cycle();
    if (code < 0) {
      console.error("error:", qret.errorMessage(host.ctx));
      if (!begun || !qret.errorIsRetryable(host.ctx))
        return code;
    }
    if (code !== STOPPED)
      cycles++;
    const report = host.report();
    console.log(`cycle outcome=${report.outcome} segments=${report.segments_deleted}`
      + ` messages=${report.messages_deleted} size=${report.size}`);
    if (most === 0 || cycles < most)
      await host.sleep();
  }
  console.log(`end cycles=${cycles} logs=${host.logs} metrics=${host.metrics}`
    + ` stopped=${Number(host.stopping)}`);
  return DONE;
}

async function main([conninfo = "", most = "0", stopAfterMs = "0", ...options]) {
  if (Number.isNaN(Number(most) + Number(stopAfterMs)))
    throw new Error("CYCLES and STOP_AFTER_MS are numbers");
  const host = new Host(conninfo, options);
  for (const name of ["SIGINT", "SIGTERM"])
    process.on(name, () => host.stop());
  let stopper = null;
  if (Number(stopAfterMs) > 0) {
    stopper = new Worker(__filename, {
      workerData: {
        ctx: koffi.address(host.ctx), stopping: host.flag, afterMs: Number(stopAfterMs),
      },
    });
  }
  const code = await sweep(host, Number(most));
  await stopper?.terminate();
  host.close();
  process.exit(code === DONE ? 0 : 1);
}

main(process.argv.slice(2)).catch((error) => {
  console.error("error:", error.message);
  process.exit(1);
});
