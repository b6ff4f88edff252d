/* SPDX-License-Identifier: MIT */
/* Install and version, statement by statement: retries, foreign functions, a stop between two. B13. */
#include "script_world.h"

#include "schema.h"
#include "sql_embedded.h"

static int entries_of(const struct sql_entry *entries)
{
	int count = 0;

	while (entries[count].kind != NULL)
		count++;
	return count;
}

static int objects_of(const struct sql_entry *entries)
{
	int count = 0;

	for (; entries->kind != NULL; entries++)
		count += strncmp(entries->kind, "object", 6) == 0 &&
		         strstr(entries->kind, "-if-streams") == NULL;
	return count;
}

START_TEST(schema_install_sends_every_entry)
{
	static const struct {
		const char *part;
		const struct sql_entry *entries;
	} parts[] = { { "broker", sql_install_broker },
		      { "log", sql_install_log },
		      { "event", sql_install_event } };

	for (size_t i = 0; i < COUNT_OF(parts); i++) {
		world_begin(0, 0);
		ck_assert_msg(qret_schema_install(world.ctx, parts[i].part) == QRET_DONE, "%s",
		              qret_error_message(world.ctx));
		ck_assert_int_gt(entries_of(parts[i].entries), 0);
		ck_assert_int_eq(script_sent("install_object"), objects_of(parts[i].entries));
		ck_assert_int_eq(world_logged("event=installed"), 1);
		/* what an index build leaves of its settings is not carried on */
		ck_assert_int_eq(script_open(), 0);
		world_end();
	}
}
END_TEST

static int failures_left;
static const char *failure;

static const char *fail_objects(struct script_call *call)
{
	if (strcmp(call->statement, "install_object") != 0 || failures_left == 0)
		return NULL;
	failures_left--;
	return failure;
}

/* Meeting load or another installer is no failure: the same statement again, a bounded number of times. */
START_TEST(schema_install_tries_again)
{
	static const char *const passing[] = { "ERROR 55P03 locked", "ERROR 40P01 deadlock",
		                               "ERROR 23505 a race", "ERROR 42723 exists",
		                               "ERROR XX000 tuple concurrently updated" };

	for (size_t i = 0; i < COUNT_OF(passing); i++) {
		world_begin(0, 0);
		world.before = fail_objects;
		failure = passing[i];
		failures_left = 5;
		ck_assert_int_eq(qret_schema_install(world.ctx, "log"), QRET_DONE);
		ck_assert_int_eq(script_sent("install_object"), objects_of(sql_install_log) + 5);
		world_end();
	}
	world_begin(0, 0);
	world.before = fail_objects;
	failure = passing[0];
	failures_left = 1000000;
	ck_assert_int_lt(qret_schema_install(world.ctx, "log"), 0);
	ck_assert_str_eq(qret_error_sqlstate(world.ctx), "55P03");
	ck_assert_int_le(script_sent("install_object"), 100);
	world_end();
}
END_TEST

/* Anything else ends it at once, and says in which file. */
START_TEST(schema_install_failure_names_file)
{
	world_begin(0, 0);
	world.before = fail_objects;
	failure = "ERROR 42501 permission denied for schema queen";
	failures_left = 1;
	ck_assert_int_eq(qret_schema_install(world.ctx, "log"), QRET_ERR_PRIVILEGE);
	ck_assert_contains(qret_error_message(world.ctx), ".sql: permission denied");
	ck_assert_int_eq(script_sent("install_object"), 1);
	ck_assert_int_eq(world_logged("event=installed"), 0);
	world_end();
}
END_TEST

START_TEST(schema_install_leaves_foreign_functions)
{
	world_begin(0, 0);
	world.before = fail_objects;
	failure = "'foreign";
	failures_left = 1;
	ck_assert_int_eq(qret_schema_install(world.ctx, "log"), QRET_DONE);
	ck_assert_int_eq(world_logged("event=foreign_function function="), 1);
	world_end();
}
END_TEST

static void stop(void)
{
	qret_stop(world.ctx);
}

START_TEST(schema_install_stops_between_statements)
{
	for (long n = 1; n < 4000; n += 97) {
		int rc;

		world_begin(0, 0);
		script_knobs.stop = stop;
		script_knobs.stop_at = n;
		rc = qret_schema_install(world.ctx, "broker");
		ck_assert_int_eq(rc, script_died() || script_knobs.stop_at == 0 ? QRET_STOPPED
		                                                                : QRET_DONE);
		world_end();
		if (rc == QRET_DONE)
			return;
	}
}
END_TEST

START_TEST(schema_install_cut_at_calls)
{
	int rc = QRET_ERR_CONNECTION;

	for (long n = 1; rc == QRET_ERR_CONNECTION; n += 13) {
		world_begin(0, 0);
		script_knobs.die_at = n;
		rc = qret_schema_install(world.ctx, "broker");
		ck_assert_msg(rc == QRET_ERR_CONNECTION || rc == QRET_DONE, "call %ld: %d", n, rc);
		script_knobs.die_at = 0;
		ck_assert_int_eq(qret_schema_install(world.ctx, "broker"), QRET_DONE);
		world_end();
	}
	ck_assert_int_eq(rc, QRET_DONE);
}
END_TEST

static const char *answer_version(struct script_call *call)
{
	return strcmp(call->statement, "schema_version") == 0 ? failure : NULL;
}

/* No record is version 0: the ping has reached the server all the same. */
START_TEST(schema_version_answers)
{
	static const struct {
		const char *answer;
		int rc;
		int32_t version;
	} rows[] = {
		{ "1", QRET_DONE, 1 },
		{ "-", QRET_DONE, 0 },
		{ "", QRET_DONE, 0 },
		{ "ERROR 42P01 no such table", QRET_DONE, 0 },
		{ "ERROR 3F000 no such schema", QRET_DONE, 0 },
		{ "ERROR 42501 denied", QRET_ERR_PRIVILEGE, 77 },
		{ "FATAL 57P01 bye", QRET_ERR_CONNECTION, 77 },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		int32_t version = 77;

		world_begin(0, 0);
		world.before = answer_version;
		failure = rows[i].answer;
		ck_assert_int_eq(qret_schema_version(world.ctx, "event", &version), rows[i].rc);
		ck_assert_int_eq(version, rows[i].version);
		ck_assert_int_eq(qret_error_message(world.ctx)[0] == '\0', rows[i].rc == QRET_DONE);
		world_end();
	}
}
END_TEST

/* On a borrowed connection: in an envelope, and given back. */
START_TEST(schema_version_borrowed)
{
	int32_t version = 77, tainted = 77;

	world_begin_attached(0, 0);
	ck_assert_int_eq(qret_schema_version(world.ctx, "log", &version), QRET_DONE);
	ck_assert_int_eq(version, 1);
	ck_assert_int_eq(script_sent("commit"), 1);
	ck_assert_int_eq(qret_detach(world.ctx, &tainted), QRET_DONE);
	ck_assert_int_eq(tainted, 0);
	world_end();
}
END_TEST

int main(void)
{
	const TTest *tests[] = { schema_install_sends_every_entry,
		                 schema_install_tries_again,
		                 schema_install_failure_names_file,
		                 schema_install_leaves_foreign_functions,
		                 schema_install_stops_between_statements,
		                 schema_install_cut_at_calls,
		                 schema_version_answers,
		                 schema_version_borrowed,
		                 NULL };

	return unit_run("schema", tests);
}
