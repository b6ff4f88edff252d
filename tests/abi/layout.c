/* SPDX-License-Identifier: MIT */
/*
 * The layout that hosts and bindings rely on, field by field: offset and size of everything up to
 * the end of each struct's first version. It is checked where it is compiled, so for every compiler
 * and word size that compiles it. Pointers follow the machine; nothing else does.
 */
#include <qretention.h>

#define WORD sizeof(void *)
/* How a struct aligns int64_t and double: to 8 bytes, but on 32-bit x86 to 4. */
#define ALIGN_8                  \
	(sizeof(struct {         \
		 char byte;      \
		 int64_t number; \
	 }) -                    \
	 sizeof(int64_t))
#define UP(offset, alignment) (((offset) + (alignment)-1) / (alignment) * (alignment))

#define AT(type, field, offset, bytes)                                                       \
	_Static_assert(offsetof(struct type, field) == (offset), #type "." #field " moved"); \
	_Static_assert(sizeof(((struct type *)0)->field) == (bytes),                         \
	               #type "." #field " has another size")
#define SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type " has another size")

SIZE(qret_work_item, 72);
AT(qret_work_item, size, 0, 4);
AT(qret_work_item, flags, 4, 4);
AT(qret_work_item, partition_id, 8, 16);
AT(qret_work_item, queue_id, 24, 16);
AT(qret_work_item, all_cutoff_us, 40, 8);
AT(qret_work_item, completed_cutoff_us, 48, 8);
AT(qret_work_item, txns_cutoff_us, 56, 8);
AT(qret_work_item, max_wait_cutoff_us, 64, 8);

SIZE(qret_step_result, 40);
AT(qret_step_result, size, 0, 4);
AT(qret_step_result, done, 4, 4);
AT(qret_step_result, rows_deleted, 8, 8);
AT(qret_step_result, messages_deleted, 16, 8);
AT(qret_step_result, watermark, 24, 8);
AT(qret_step_result, elapsed_us, 32, 8);

SIZE(qret_cycle_report, 216);
AT(qret_cycle_report, size, 0, 4);
AT(qret_cycle_report, outcome, 4, 4);
AT(qret_cycle_report, clock_us, 8, 8);
AT(qret_cycle_report, queues, 16, 8);
AT(qret_cycle_report, partitions, 24, 8);
AT(qret_cycle_report, steps, 32, 8);
AT(qret_cycle_report, segments_deleted, 40, 8);
AT(qret_cycle_report, messages_deleted, 48, 8);
AT(qret_cycle_report, txns_purged, 56, 8);
AT(qret_cycle_report, max_wait_evicted, 64, 8);
AT(qret_cycle_report, partitions_deleted, 72, 8);
AT(qret_cycle_report, metrics_purged, 80, 8);
AT(qret_cycle_report, events_deleted, 88, 8);
AT(qret_cycle_report, deliveries_deleted, 96, 8);
AT(qret_cycle_report, items_failed, 104, 8);
AT(qret_cycle_report, items_locked, 112, 8);
AT(qret_cycle_report, items_pinned, 120, 8);
AT(qret_cycle_report, round_trips, 128, 8);
AT(qret_cycle_report, elapsed_us, 136, 8); /* 144 bytes up to here: the least that is accepted */
AT(qret_cycle_report, events_succeeded, 144, 8);
AT(qret_cycle_report, events_settled, 152, 8);
AT(qret_cycle_report, events_own_window, 160, 8);
AT(qret_cycle_report, events_default_window, 168, 8);
AT(qret_cycle_report, events_oversize, 176, 8);
AT(qret_cycle_report, rows_poison, 184, 8);
AT(qret_cycle_report, consecutive_failures, 192, 8);
AT(qret_cycle_report, last_success_us, 200, 8);
AT(qret_cycle_report, oldest_overdue_us, 208, 8);

SIZE(qret_poll_fd, 8);
AT(qret_poll_fd, fd, 0, 4);
AT(qret_poll_fd, events, 4, 4);

SIZE(qret_log_record, 8 + 2 * WORD + 8);
AT(qret_log_record, size, 0, 4);
AT(qret_log_record, level, 4, 4);
AT(qret_log_record, event, 8, WORD);
AT(qret_log_record, text, 8 + WORD, WORD);
AT(qret_log_record, suppressed, 8 + 2 * WORD, 8);

SIZE(qret_metric, UP(8 + 4 * WORD, ALIGN_8) + 8);
AT(qret_metric, size, 0, 4);
AT(qret_metric, kind, 4, 4);
AT(qret_metric, name, 8, WORD);
AT(qret_metric, unit, 8 + WORD, WORD);
AT(qret_metric, help, 8 + 2 * WORD, WORD);
AT(qret_metric, phase, 8 + 3 * WORD, WORD);
AT(qret_metric, value, 8 + 4 * WORD, 8);

SIZE(qret_option_info, 8 + 6 * WORD);
AT(qret_option_info, size, 0, 4);
AT(qret_option_info, flags, 4, 4);
AT(qret_option_info, name, 8, WORD);
AT(qret_option_info, env, 8 + WORD, WORD);
AT(qret_option_info, type, 8 + 2 * WORD, WORD);
AT(qret_option_info, default_value, 8 + 3 * WORD, WORD);
AT(qret_option_info, range, 8 + 4 * WORD, WORD);
AT(qret_option_info, help, 8 + 5 * WORD, WORD);

_Static_assert(sizeof(int) == 4, "results are 32 bits wide");
_Static_assert(QRET_CUTOFF_OFF == INT64_MIN, "the cutoff that is off moved");
