/* SPDX-License-Identifier: MIT */
/* One row a rule of the table: what a SQLSTATE is called for the host, and what the runner does about it. */
#include "unit.h"

#include "sqlstate.h"

static const struct {
	const char *sqlstate;
	int code;
	enum sqlstate_action action;
} expected[] = {
	{ "QR001", QRET_ERR_SQL, SQLSTATE_LOCKED },
	{ "QR006", QRET_ERR_SQL, SQLSTATE_LOCKED },
	{ "QR002", QRET_ERR_LEADER_LOST, SQLSTATE_CYCLE },
	{ "QR007", QRET_ERR_LEADER_LOST, SQLSTATE_CYCLE },
	{ "QR003", QRET_ERR_SCHEMA, SQLSTATE_PERMANENT },
	{ "QR004", QRET_ERR_SQL, SQLSTATE_PERMANENT },
	{ "QR005", QRET_ERR_ARGUMENT, SQLSTATE_ITEM },
	{ "08000", QRET_ERR_CONNECTION, SQLSTATE_CYCLE },
	{ "08006", QRET_ERR_CONNECTION, SQLSTATE_CYCLE },
	{ "08P01", QRET_ERR_CONNECTION, SQLSTATE_PERMANENT },
	{ "57P01", QRET_ERR_CONNECTION, SQLSTATE_CYCLE },
	{ "57P02", QRET_ERR_CONNECTION, SQLSTATE_CYCLE },
	{ "57P03", QRET_ERR_CONNECTION, SQLSTATE_CYCLE },
	{ "57P04", QRET_ERR_CONNECTION, SQLSTATE_PERMANENT },
	{ "57P05", QRET_ERR_CONNECTION, SQLSTATE_CYCLE },
	{ "25006", QRET_ERR_SQL, SQLSTATE_CYCLE },
	{ "25P03", QRET_ERR_CONNECTION, SQLSTATE_CYCLE },
	{ "25P04", QRET_ERR_CONNECTION, SQLSTATE_CYCLE },
	{ "53100", QRET_ERR_SQL, SQLSTATE_CYCLE },
	{ "53200", QRET_ERR_SQL, SQLSTATE_CYCLE },
	{ "53300", QRET_ERR_CONNECTION, SQLSTATE_CYCLE },
	{ "58030", QRET_ERR_SQL, SQLSTATE_CYCLE },
	{ "XX000", QRET_ERR_SQL, SQLSTATE_ITEM },
	{ "XX001", QRET_ERR_SQL, SQLSTATE_ITEM },
	{ "28000", QRET_ERR_CONNECTION, SQLSTATE_PERMANENT },
	{ "28P01", QRET_ERR_CONNECTION, SQLSTATE_PERMANENT },
	{ "3D000", QRET_ERR_CONNECTION, SQLSTATE_PERMANENT },
	{ "42501", QRET_ERR_PRIVILEGE, SQLSTATE_PERMANENT },
	{ "42P01", QRET_ERR_SCHEMA, SQLSTATE_PERMANENT },
	{ "42883", QRET_ERR_SCHEMA, SQLSTATE_PERMANENT },
	{ "42703", QRET_ERR_SCHEMA, SQLSTATE_PERMANENT },
	{ "3F000", QRET_ERR_SCHEMA, SQLSTATE_PERMANENT },
	{ "0A000", QRET_ERR_SQL, SQLSTATE_PERMANENT },
	{ "26000", QRET_ERR_SQL, SQLSTATE_CYCLE },
	{ "42P05", QRET_ERR_SQL, SQLSTATE_CYCLE },
	{ "40001", QRET_ERR_SQL, SQLSTATE_RETRY },
	{ "40P01", QRET_ERR_SQL, SQLSTATE_RETRY },
	{ "40003", QRET_ERR_SQL, SQLSTATE_RETRY },
	{ "55P03", QRET_ERR_SQL, SQLSTATE_LOCKED },
	{ "55006", QRET_ERR_SQL, SQLSTATE_LOCKED },
	{ "57014", QRET_ERR_TIMEOUT, SQLSTATE_SHRINK },
	/* what no row names is the item's own fault */
	{ "22003", QRET_ERR_SQL, SQLSTATE_ITEM },
	{ "P0001", QRET_ERR_SQL, SQLSTATE_ITEM },
	{ "23503", QRET_ERR_SQL, SQLSTATE_ITEM },
	{ "QR999", QRET_ERR_SQL, SQLSTATE_ITEM },
	{ "", QRET_ERR_SQL, SQLSTATE_ITEM },
	{ "5", QRET_ERR_SQL, SQLSTATE_ITEM },
};

START_TEST(sqlstate_table)
{
	for (size_t i = 0; i < COUNT_OF(expected); i++) {
		const struct sqlstate_rule *rule = sqlstate_rule(expected[i].sqlstate);

		ck_assert_ptr_nonnull(rule);
		ck_assert_msg(rule->code == expected[i].code, "code of %s", expected[i].sqlstate);
		ck_assert_msg(rule->action == expected[i].action, "action of %s",
		              expected[i].sqlstate);
		ck_assert_ptr_nonnull(rule->hint);
	}
}
END_TEST

/* What somebody must mend says what to mend. */
START_TEST(sqlstate_permanent_has_hint)
{
	for (size_t i = 0; i < COUNT_OF(expected); i++) {
		const struct sqlstate_rule *rule = sqlstate_rule(expected[i].sqlstate);

		if (rule->action == SQLSTATE_PERMANENT &&
		    strcmp(expected[i].sqlstate, "0A000") != 0)
			ck_assert_msg(rule->hint[0] != '\0', "no hint for %s",
			              expected[i].sqlstate);
	}
}
END_TEST

int main(void)
{
	const TTest *tests[] = { sqlstate_table, sqlstate_permanent_has_hint, NULL };

	return unit_run("sqlstate", tests);
}
