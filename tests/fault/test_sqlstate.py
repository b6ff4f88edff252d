"""One test a row of lib/sqlstate.c: what a SQLSTATE does to the item and the cycle."""

import os
import re

import pytest

from cycle import support
from pg import bulk, qret

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SQL, CONNECTION, SCHEMA = qret.ERR_SQL, qret.ERR_CONNECTION, qret.ERR_SCHEMA

# Prefix of a row -> (a SQLSTATE that it decides, what follows, the code of the failure).
ENDS = "ends the cycle, tried again"
MEND = "ends the cycle, somebody must mend something"
SPARES = "spares the other items"
ROWS = {
    "QR001": ("QR001", SPARES, SQL),
    "QR006": ("QR006", SPARES, SQL),
    "QR002": ("QR002", ENDS, qret.ERR_LEADER_LOST),
    "QR007": ("QR007", ENDS, qret.ERR_LEADER_LOST),
    "QR003": ("QR003", MEND, SCHEMA),
    "QR004": ("QR004", MEND, SQL),
    "QR005": ("QR005", SPARES, qret.ERR_ARGUMENT),
    "08": ("08006", ENDS, CONNECTION),
    "08P01": ("08P01", MEND, CONNECTION),
    "57P": ("57P01", ENDS, CONNECTION),
    "57P04": ("57P04", MEND, CONNECTION),
    "25006": ("25006", ENDS, SQL),
    "25P03": ("25P03", ENDS, CONNECTION),
    "25P04": ("25P04", ENDS, CONNECTION),
    "53": ("53100", ENDS, SQL),
    "53300": ("53300", ENDS, CONNECTION),
    "58": ("58030", ENDS, SQL),
    "XX": ("XX001", SPARES, SQL),
    "28": ("28000", MEND, CONNECTION),
    "3D000": ("3D000", MEND, CONNECTION),
    "42501": ("42501", MEND, qret.ERR_PRIVILEGE),
    "42": ("42883", MEND, SCHEMA),
    "3F000": ("3F000", MEND, SCHEMA),
    "0A000": ("0A000", MEND, SQL),
    "26000": ("26000", ENDS, SQL),
    "42P05": ("42P05", ENDS, SQL),
    "40001": ("40001", SPARES, SQL),
    "40P01": ("40P01", SPARES, SQL),
    "40": ("40003", SPARES, SQL),
    "55P03": ("55P03", SPARES, SQL),
    "55006": ("55006", SPARES, SQL),
    "57014": ("57014", SPARES, qret.ERR_TIMEOUT),
    "": ("22012", SPARES, SQL),
}
OWN = {"QR001", "QR002", "QR003", "QR004", "QR005", "QR006", "QR007"}


def rows_of_the_code():
    with open(os.path.join(ROOT, "lib", "sqlstate.h"), encoding="utf-8") as header:
        own = dict(re.findall(r'#define (SQLSTATE_\w+)\s+"(\w+)"', header.read()))
    with open(os.path.join(ROOT, "lib", "sqlstate.c"), encoding="utf-8") as source:
        names = re.findall(r'^\t\{ ("[^"]*"|SQLSTATE_\w+), QRET_', source.read(), re.MULTILINE)
    return {name.strip('"') if name.startswith('"') else own[name] for name in names}


def test_every_row_has_its_test():
    assert rows_of_the_code() == set(ROWS)


@pytest.mark.parametrize("prefix", ROWS)
def test_sqlstate(db, prefix):
    """Raised by a host's own trigger inside the step of one of three partitions."""
    sqlstate, effect, code = ROWS[prefix]
    _, ids = bulk.backlog(db, 3, 2)
    raising = f"RAISE EXCEPTION 'out of order' USING ERRCODE = '{sqlstate}', HINT = 'mend it'"
    support.fail_deletes_of(db, ids[0], raising)
    with qret.Context(db.dsn, batch_size=1, late_lock_ms=50) as context:
        outcome, report = context.try_cycle()
        assert context.sqlstate == sqlstate
        assert context.message == "out of order" and context.hint == "mend it"
        assert context.retryable == (effect != MEND)
        if effect == SPARES:
            assert outcome == qret.PARTIAL
            assert report["segments_deleted"] == 4
            assert report["items_failed"] == 1
            assert context.events("item_failed")
        else:
            assert outcome == code
            assert report["segments_deleted"] < 6
            assert report["consecutive_failures"] == 1
    assert support.eventually(lambda: not support.advisory_locks(db))
    db.sql("DROP TRIGGER refuse ON queen.log_segments")
    with qret.Context(db.dsn) as context:
        context.cycle()
    assert bulk.count(db) == 0
    assert db.one("SELECT sum(messages_deleted) FROM queen.retention_history") == 6


@pytest.mark.parametrize("prefix", [p for p in ROWS if ROWS[p][1] == SPARES])
def test_sqlstate_of_one_step_by_hand(db, prefix):
    """The step returns the class itself; one that only missed a lock is PARTIAL, not done."""
    sqlstate, _, code = ROWS[prefix]
    _, ids = bulk.backlog(db, 1, 2)
    support.fail_deletes_of(db, ids[0], f"RAISE EXCEPTION 'no' USING ERRCODE = '{sqlstate}'")
    with qret.Context(db.dsn) as context:
        _, (item,) = context.worklist_structs()
        result = qret.StepResult()
        outcome = context.call("step", qret.PHASE_RETENTION, item, result)
        if sqlstate in ("QR001", "QR006", "55P03", "55006"):
            assert outcome == qret.PARTIAL and not result.done
        else:
            assert outcome == code
        # A second step that waits late for its lock says so in its own words.
        assert context.sqlstate == ("QR001" if sqlstate == "55P03" else sqlstate)
