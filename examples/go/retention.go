// SPDX-License-Identifier: MIT

// A host of libqretention in Go, through cgo.
//
//	retention CONNINFO [CYCLES [STOP_AFTER_MS [NAME=VALUE ...]]]
//
// Sweeps until SIGINT or SIGTERM, for CYCLES cycles (0: no limit), or until another goroutine stops
// it after STOP_AFTER_MS milliseconds (0: never). NAME=VALUE sets an option of the library.
package main

/*
#cgo pkg-config: libqretention
#include <qretention.h>
#include <stdlib.h>

// The report of this host ends after 144 bytes: all that it wants to know.
struct report {
	uint32_t size;
	int32_t outcome;
	int64_t clock_us, queues, partitions, steps, segments_deleted, messages_deleted, txns_purged,
		max_wait_evicted, partitions_deleted, metrics_purged, events_deleted, deliveries_deleted,
		items_failed, items_locked, items_pinned, round_trips, elapsed_us;
};

void goLog(uintptr_t host, struct qret_log_record *record);
void goMetric(uintptr_t host);

// The handle is a pointer here alone: Go would take such a small one for a stray pointer.
static void on_log(void *user_data, const struct qret_log_record *record)
{
	goLog((uintptr_t)user_data, (struct qret_log_record *)record);
}

static void on_metric(void *user_data, const struct qret_metric *metric)
{
	(void)metric;
	goMetric((uintptr_t)user_data);
}

static int set_callbacks(struct qret_ctx *ctx, int32_t level, uintptr_t host)
{
	int rc = qret_set_log(ctx, level, on_log, (void *)host, NULL);

	return rc ? rc : qret_set_metrics(ctx, on_metric, (void *)host, NULL);
}

static int get_report(struct qret_ctx *ctx, struct report *report)
{
	report->size = sizeof(*report);
	return qret_cycle_get_report(ctx, (struct qret_cycle_report *)report);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/cgo"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Host is one context. It belongs to one goroutine at a time, but for stop.
type Host struct {
	ctx           *C.struct_qret_ctx
	handle        cgo.Handle
	stopping      int32
	logs, metrics int
}

// A Go pointer may not stay in C, so the callbacks are given a handle to the host.
func hostOf(handle C.uintptr_t) *Host {
	return cgo.Handle(handle).Value().(*Host)
}

//export goLog
func goLog(handle C.uintptr_t, record *C.struct_qret_log_record) {
	hostOf(handle).logs++
	fmt.Fprintln(os.Stderr, C.GoString(record.text))
}

//export goMetric
func goMetric(handle C.uintptr_t) {
	hostOf(handle).metrics++
}

func newHost(conninfo string, options []string) (*Host, error) {
	host := &Host{}
	if C.qret_ctx_new(&host.ctx) != C.QRET_DONE {
		return nil, errors.New("out of memory")
	}
	host.handle = cgo.NewHandle(host)
	code := C.set_callbacks(host.ctx, C.QRET_LOG_INFO, C.uintptr_t(host.handle))
	if code == C.QRET_DONE {
		code = C.qret_load_env(host.ctx)
	}
	for _, option := range options {
		if !strings.Contains(option, "=") {
			return nil, errors.New("an option is NAME=VALUE")
		}
		if code == C.QRET_DONE {
			code = host.set(option)
		}
	}
	if code == C.QRET_DONE {
		text := C.CString(conninfo)
		code = C.qret_connect(host.ctx, text)
		C.free(unsafe.Pointer(text))
	}
	if code != C.QRET_DONE {
		return nil, errors.New(host.message())
	}
	return host, nil
}

func (host *Host) set(option string) C.int {
	name, value, _ := strings.Cut(option, "=")
	cName, cValue := C.CString(name), C.CString(value)
	defer C.free(unsafe.Pointer(cName))
	defer C.free(unsafe.Pointer(cValue))
	return C.qret_set_option(host.ctx, cName, cValue)
}

func (host *Host) message() string {
	return C.GoString(C.qret_error_message(host.ctx))
}

// From any goroutine.
func (host *Host) stop() {
	atomic.StoreInt32(&host.stopping, 1)
	C.qret_stop(host.ctx)
}

func (host *Host) stopped() bool {
	return atomic.LoadInt32(&host.stopping) == 1
}

// The cycle that has begun.
func (host *Host) cycle() C.int {
	for {
		code := C.qret_cycle_process(host.ctx)
		if code == C.QRET_WAIT {
			C.qret_wait(host.ctx)
		} else if code != C.QRET_MORE {
			return code
		}
	}
}

func (host *Host) sleep() {
	for !host.stopped() && C.qret_next_cycle_us(host.ctx) > C.qret_now_us() {
		C.qret_wait(host.ctx)
	}
}

// Nobody may be inside stop any more.
func (host *Host) close() {
	C.qret_ctx_free(host.ctx)
	host.handle.Delete()
}

// sweep runs cycles until a stop, or until an error that only a person can mend.
func sweep(host *Host, most int) error {
	cycles := 0
	for !host.stopped() && (most == 0 || cycles < most) {
		code := C.qret_cycle_begin(host.ctx)
		if code == C.QRET_STOPPED {
			break // before there was a cycle to tell of
		}
		begun := code == C.QRET_DONE
		if begun {
			code = host.cycle()
		}
		if code < 0 {
			fmt.Fprintln(os.Stderr, "error:", host.message())
			if !begun || C.qret_error_is_retryable(host.ctx) == 0 {
				return errors.New(host.message())
			}
		}
		if code != C.QRET_STOPPED {
			cycles++
		}
		var report C.struct_report
		C.get_report(host.ctx, &report)
		fmt.Printf("cycle outcome=%d segments=%d messages=%d size=%d\n", report.outcome,
			report.segments_deleted, report.messages_deleted, report.size)
		if most == 0 || cycles < most {
			host.sleep()
		}
	}
	stopped := 0
	if host.stopped() {
		stopped = 1
	}
	fmt.Printf("end cycles=%d logs=%d metrics=%d stopped=%d\n", cycles, host.logs, host.metrics,
		stopped)
	return nil
}

func number(arguments []string, index int) int {
	if len(arguments) <= index {
		return 0
	}
	value, err := strconv.Atoi(arguments[index])
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
	return value
}

func main() {
	arguments := append([]string{}, os.Args[1:]...)
	conninfo, options := "", []string{}
	if len(arguments) > 0 {
		conninfo = arguments[0]
	}
	if len(arguments) > 3 {
		options = arguments[3:]
	}
	host, err := newHost(conninfo, options)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	var later <-chan time.Time
	if after := number(arguments, 2); after > 0 {
		later = time.After(time.Duration(after) * time.Millisecond)
	}
	ended, watched := make(chan bool), make(chan bool)
	go func() {
		defer close(watched)
		select {
		case <-signals:
			host.stop()
		case <-later:
			host.stop()
		case <-ended:
		}
	}()
	err = sweep(host, number(arguments, 1))
	close(ended)
	<-watched
	host.close()
	if err != nil {
		os.Exit(1)
	}
}
