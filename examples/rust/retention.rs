// SPDX-License-Identifier: MIT
//! A host of libqretention in Rust: extern "C" and the standard library, no crates.
//!
//!     retention CONNINFO [CYCLES [STOP_AFTER_MS [NAME=VALUE ...]]]
//!
//! Sweeps until SIGINT or SIGTERM, for CYCLES cycles (0: no limit), or until another thread
//! stops it after STOP_AFTER_MS milliseconds (0: never). NAME=VALUE sets an option of the library.

use std::env;
use std::ffi::{c_void, CStr, CString};
use std::os::raw::{c_char, c_int};
use std::process::exit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::thread;
use std::time::Duration;

const DONE: c_int = 0;
const MORE: c_int = 1;
const WAIT: c_int = 2;
const STOPPED: c_int = 4;
const LOG_INFO: i32 = 3;
const SIGINT: c_int = 2;
const SIGTERM: c_int = 15;

#[repr(C)]
pub struct Ctx {
    opaque: [u8; 0],
}

#[repr(C)]
pub struct LogRecord {
    size: u32,
    level: i32,
    event: *const c_char,
    text: *const c_char,
    suppressed: i64,
}

#[repr(C)]
pub struct Metric {
    size: u32,
    kind: i32,
    name: *const c_char,
    unit: *const c_char,
    help: *const c_char,
    phase: *const c_char,
    value: f64,
}

/// The first 144 bytes of the report: all that this host wants to know.
#[repr(C)]
#[derive(Default)]
pub struct Report {
    size: u32,
    outcome: i32,
    clock_us: i64,
    queues: i64,
    partitions: i64,
    steps: i64,
    segments_deleted: i64,
    messages_deleted: i64,
    txns_purged: i64,
    max_wait_evicted: i64,
    partitions_deleted: i64,
    metrics_purged: i64,
    events_deleted: i64,
    deliveries_deleted: i64,
    items_failed: i64,
    items_locked: i64,
    items_pinned: i64,
    round_trips: i64,
    elapsed_us: i64,
}

type LogFn = extern "C" fn(*mut c_void, *const LogRecord);
type MetricFn = extern "C" fn(*mut c_void, *const Metric);
type FreeFn = extern "C" fn(*mut c_void);

#[link(name = "qretention")]
extern "C" {
    fn qret_ctx_new(ret_ctx: *mut *mut Ctx) -> c_int;
    fn qret_ctx_free(ctx: *mut Ctx);
    fn qret_load_env(ctx: *mut Ctx) -> c_int;
    fn qret_set_option(ctx: *mut Ctx, name: *const c_char, value: *const c_char) -> c_int;
    fn qret_set_log(
        ctx: *mut Ctx,
        max_level: i32,
        log: LogFn,
        user_data: *mut c_void,
        free: Option<FreeFn>,
    ) -> c_int;
    fn qret_set_metrics(
        ctx: *mut Ctx,
        metric: MetricFn,
        user_data: *mut c_void,
        free: Option<FreeFn>,
    ) -> c_int;
    fn qret_connect(ctx: *mut Ctx, conninfo: *const c_char) -> c_int;
    fn qret_cycle_begin(ctx: *mut Ctx) -> c_int;
    fn qret_cycle_process(ctx: *mut Ctx) -> c_int;
    fn qret_cycle_get_report(ctx: *mut Ctx, ret_report: *mut Report) -> c_int;
    fn qret_wait(ctx: *mut Ctx) -> c_int;
    fn qret_next_cycle_us(ctx: *mut Ctx) -> i64;
    fn qret_now_us() -> i64;
    fn qret_stop(ctx: *mut Ctx);
    fn qret_error_message(ctx: *mut Ctx) -> *const c_char;
    fn qret_error_is_retryable(ctx: *mut Ctx) -> i32;
    fn signal(number: c_int, handler: extern "C" fn(c_int)) -> *mut c_void;
}

/// What the callbacks count. It is reached by its address alone, the library's and ours.
#[derive(Default)]
struct Counts {
    logs: u64,
    metrics: u64,
}

extern "C" fn on_log(user_data: *mut c_void, record: *const LogRecord) {
    // No panic may leave a callback: a closed stderr is no reason for one.
    unsafe {
        (*(user_data as *mut Counts)).logs += 1;
        let text = CStr::from_ptr((*record).text).to_string_lossy();
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "{}", text);
    }
}

extern "C" fn on_metric(user_data: *mut c_void, _metric: *const Metric) {
    unsafe { (*(user_data as *mut Counts)).metrics += 1 };
}

static CONTEXT: AtomicPtr<Ctx> = AtomicPtr::new(ptr::null_mut());
static STOPPING: AtomicBool = AtomicBool::new(false);

/// From any thread, and from a signal handler: it touches atomics and calls qret_stop.
fn stop() {
    STOPPING.store(true, Ordering::SeqCst);
    unsafe { qret_stop(CONTEXT.load(Ordering::SeqCst)) };
}

extern "C" fn on_signal(_number: c_int) {
    stop();
}

fn stopping() -> bool {
    STOPPING.load(Ordering::SeqCst)
}

struct Host {
    ctx: *mut Ctx,
    counts: *mut Counts,
}

impl Host {
    fn new(conninfo: &str, options: &[String]) -> Result<Host, String> {
        let mut host = Host {
            ctx: ptr::null_mut(),
            counts: Box::into_raw(Box::default()),
        };
        if unsafe { qret_ctx_new(&mut host.ctx) } != DONE {
            return Err("out of memory".into());
        }
        let data = host.counts as *mut c_void;
        unsafe {
            host.check(qret_set_log(host.ctx, LOG_INFO, on_log, data, None))?;
            host.check(qret_set_metrics(host.ctx, on_metric, data, None))?;
            host.check(qret_load_env(host.ctx))?;
        }
        for option in options {
            let (name, value) = option.split_once('=').ok_or("an option is NAME=VALUE")?;
            let (name, value) = (text(name)?, text(value)?);
            host.check(unsafe { qret_set_option(host.ctx, name.as_ptr(), value.as_ptr()) })?;
        }
        host.check(unsafe { qret_connect(host.ctx, text(conninfo)?.as_ptr()) })?;
        Ok(host)
    }

    fn message(&self) -> String {
        unsafe { CStr::from_ptr(qret_error_message(self.ctx)) }
            .to_string_lossy()
            .into_owned()
    }

    fn check(&self, code: c_int) -> Result<(), String> {
        if code == DONE {
            Ok(())
        } else {
            Err(self.message())
        }
    }

    /// The cycle that has begun.
    fn cycle(&mut self) -> c_int {
        loop {
            let code = unsafe { qret_cycle_process(self.ctx) };
            if code == WAIT {
                unsafe { qret_wait(self.ctx) };
            } else if code != MORE {
                return code;
            }
        }
    }

    fn report(&self) -> Result<Report, String> {
        let mut report = Report {
            size: std::mem::size_of::<Report>() as u32,
            ..Report::default()
        };
        self.check(unsafe { qret_cycle_get_report(self.ctx, &mut report) })?;
        Ok(report)
    }

    fn sleep(&mut self) {
        while !stopping() && unsafe { qret_next_cycle_us(self.ctx) > qret_now_us() } {
            unsafe { qret_wait(self.ctx) };
        }
    }
}

impl Drop for Host {
    /// A signal that comes later finds no context, which qret_stop takes for nothing to do.
    fn drop(&mut self) {
        CONTEXT.store(ptr::null_mut(), Ordering::SeqCst);
        unsafe {
            qret_ctx_free(self.ctx);
            drop(Box::from_raw(self.counts));
        }
    }
}

fn text(value: &str) -> Result<CString, String> {
    CString::new(value).map_err(|error| error.to_string())
}

/// Cycles until a stop, or until an error that only a person can mend.
fn sweep(host: &mut Host, most: u64) -> Result<(), String> {
    let mut cycles = 0;
    while !stopping() && (most == 0 || cycles < most) {
        let mut code = unsafe { qret_cycle_begin(host.ctx) };
        if code == STOPPED {
            break; // before there was a cycle to tell of
        }
        let begun = code == DONE;
        if begun {
            code = host.cycle();
        }
        if code < 0 {
            if !begun || unsafe { qret_error_is_retryable(host.ctx) } == 0 {
                return Err(host.message());
            }
            eprintln!("error: {}", host.message());
        }
        if code != STOPPED {
            cycles += 1;
        }
        let report = host.report()?;
        println!(
            "cycle outcome={} segments={} messages={} size={}",
            report.outcome, report.segments_deleted, report.messages_deleted, report.size
        );
        if most == 0 || cycles < most {
            host.sleep();
        }
    }
    let counts = unsafe { &*host.counts };
    println!(
        "end cycles={} logs={} metrics={} stopped={}",
        cycles,
        counts.logs,
        counts.metrics,
        stopping() as u8
    );
    Ok(())
}

fn run(arguments: &[String]) -> Result<(), String> {
    let number = |index: usize| match arguments.get(index) {
        Some(word) => word.parse::<u64>().map_err(|error| error.to_string()),
        None => Ok(0),
    };
    let conninfo = arguments.first().map_or("", String::as_str);
    let (most, stop_after_ms) = (number(1)?, number(2)?);
    let mut host = Host::new(conninfo, arguments.get(3..).unwrap_or(&[]))?;
    CONTEXT.store(host.ctx, Ordering::SeqCst);
    unsafe {
        signal(SIGINT, on_signal);
        signal(SIGTERM, on_signal);
    }
    // The other thread ends before the context does: at its time, or with `ended`.
    let (ended, end) = channel::<()>();
    let stopper = (stop_after_ms > 0).then(|| {
        thread::spawn(move || {
            let waited = end.recv_timeout(Duration::from_millis(stop_after_ms));
            if waited == Err(RecvTimeoutError::Timeout) {
                stop();
            }
        })
    });
    let swept = sweep(&mut host, most);
    drop(ended);
    if let Some(thread) = stopper {
        let _ = thread.join();
    }
    swept
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let Err(message) = run(&arguments) {
        eprintln!("error: {}", message);
        exit(1);
    }
}
