"""Structs that begin with their size, through the public calls: smaller, larger, refused."""

import ctypes

import pytest

from hosts.programs import fill
from pg import qret
from pg import qret_types as types

FENCE = 0xEE
ROOM = 8192
OUTPUTS = {  # struct: (least size, the library's size)
    "option_info": (56, 56),
    "metric": (48, 48),
    "work_item": (72, 72),
    "step_result": (40, 40),
    "cycle_report": (144, 216),
}


class Caller:
    """Bytes of a caller's: a size, and fences from the first byte after it on."""

    def __init__(self, size, content=b""):
        self.bytes = (ctypes.c_uint8 * ROOM)(*([FENCE] * ROOM))
        self.size = size
        self.bytes[0:4] = size.to_bytes(4, "little")
        self.bytes[4 : 4 + len(content)] = content

    @property
    def pointer(self):
        return ctypes.cast(self.bytes, ctypes.c_void_p)

    def read(self, start, end):
        return bytes(self.bytes[start:end])

    def is_fenced_from(self, start):
        return all(byte == FENCE for byte in self.bytes[start:])


@pytest.fixture(scope="module")
def plain():
    """The library without prototypes, so that any pointer goes through."""
    return ctypes.CDLL(qret.path())


@pytest.fixture
def calls(plain, db):
    """{struct: a call that fills it}."""
    fill(db, segments=3)
    with qret.Context(db.dsn, work_list="scan") as context:
        handle = context.handle
        worklist = ctypes.c_void_p()
        assert plain.qret_worklist_build(handle, ctypes.byref(worklist)) == types.DONE
        zero = ctypes.c_uint64(0)
        item = types.WorkItem()
        assert plain.qret_worklist_get(worklist, zero, ctypes.byref(item)) == types.DONE
        assert plain.qret_run_cycle(handle, None) == types.DONE
        yield {
            "option_info": lambda out: plain.qret_option_get_info(0, out),
            "metric": lambda out: plain.qret_metric_get_info(0, out),
            "work_item": lambda out: plain.qret_worklist_get(worklist, zero, out),
            "step_result": lambda out: plain.qret_step(handle, 1, ctypes.byref(item), out),
            "cycle_report": lambda out: plain.qret_cycle_get_report(handle, out),
        }
        plain.qret_worklist_free(worklist)


def is_pointer_sized():
    return ctypes.sizeof(ctypes.c_void_p) == 8


@pytest.mark.skipif(
    not is_pointer_sized(), reason="the sizes of structs with pointers are for 64 bits"
)
@pytest.mark.parametrize("struct", OUTPUTS)
def test_size_of_an_output(calls, struct):
    least, size = OUTPUTS[struct]
    for given in (least, size, size + 8, 4096):
        caller = Caller(given)
        assert calls[struct](caller.pointer) == types.DONE, given
        assert caller.read(0, 4) == given.to_bytes(4, "little"), "size is the caller's"
        assert caller.is_fenced_from(given), f"a byte past {given} was written"
        assert caller.read(size, given) == bytes(max(given - size, 0)), "an unknown tail is zeroed"


@pytest.mark.skipif(
    not is_pointer_sized(), reason="the sizes of structs with pointers are for 64 bits"
)
@pytest.mark.parametrize("struct", OUTPUTS)
def test_size_of_an_output_that_is_refused(calls, struct):
    least, _ = OUTPUTS[struct]
    for given in (0, 3, least - 1, 4097, 0xFFFFFFFF):
        caller = Caller(given)
        assert calls[struct](caller.pointer) == types.ERR_ARGUMENT, given
        assert caller.is_fenced_from(4)
    assert calls[struct](None) == types.ERR_ARGUMENT


@pytest.mark.parametrize(
    "given,tail,expected",
    [
        (71, b"", types.ERR_ARGUMENT),
        (72, b"", types.DONE),
        (80, bytes(8), types.DONE),
        (4096, bytes(4024), types.DONE),
        (80, bytes(7) + b"\1", types.ERR_ARGUMENT),
        (4097, bytes(4025), types.ERR_ARGUMENT),
    ],
)
def test_size_of_an_input(plain, db, given, tail, expected):
    """A work item: an unknown tail is accepted while it is zero."""
    partition = fill(db, segments=3)
    known = bytes(qret.work_item(partition))[4:]
    caller = Caller(given, known + tail)
    result = types.StepResult()
    with qret.Context(db.dsn) as context:
        code = plain.qret_step(context.handle, 1, caller.pointer, ctypes.byref(result))
    assert code == expected
    assert caller.is_fenced_from(4 + len(known) + len(tail))


def test_size_of_a_record_is_the_library_s(db):
    """In a callback the size says how much of the struct there is."""
    sizes = set()
    with qret.Context(db.dsn) as context:

        def on_log(_data, record):
            sizes.add(("log", record.contents.size))

        def on_metric(_data, metric):
            sizes.add(("metric", metric.contents.size))

        log_fn, metric_fn = types.LOG_FN(on_log), types.METRIC_FN(on_metric)
        context.lib.qret_set_log(context.handle, types.LOG_DEBUG, log_fn, None, types.FREE_FN())
        context.lib.qret_set_metrics(context.handle, metric_fn, None, types.FREE_FN())
        context.cycle()
    assert sizes == {
        ("log", ctypes.sizeof(types.LogRecord)),
        ("metric", ctypes.sizeof(types.Metric)),
    }
