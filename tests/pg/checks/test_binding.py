"""The ctypes binding agrees with the header: every call, constant, size and offset."""

import os
import re
import subprocess

import pytest

from pg import qret_types as types
from pg.qret import ROOT

HEADER = os.path.join(ROOT, "include", "qretention.h")
STRUCTS = {
    "work_item": types.WorkItem,
    "step_result": types.StepResult,
    "cycle_report": types.CycleReport,
    "poll_fd": types.PollFd,
    "log_record": types.LogRecord,
    "metric": types.Metric,
    "option_info": types.OptionInfo,
}


def header():
    with open(HEADER, encoding="utf-8") as source:
        return source.read()


def test_binding_declares_every_call():
    assert set(re.findall(r"QRET_API[^;]*?\b(qret_\w+)\(", header())) == set(types.PROTOTYPES)


def test_binding_knows_every_outcome():
    define = r"#define QRET_(\w+)\s+(?:\\\n\s+)?\(?(-?\d+)\)?\s"
    found = {
        name: int(value)
        for name, value in re.findall(define, header())
        if name in types.OUTCOMES or name.startswith("ERR_")
    }
    assert found == types.OUTCOMES


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    """{struct: {field or "": offset or size}} as the C compiler sees it."""
    lines = []
    for name, struct in STRUCTS.items():
        lines.append(f'printf("{name} . %zu\\n", sizeof(struct qret_{name}));')
        for field, *_ in struct._fields_:
            place = f"offsetof(struct qret_{name}, {field})"
            lines.append(f'printf("{name} {field} %zu\\n", {place});')
    folder = tmp_path_factory.mktemp("layout")
    source = folder / "layout.c"
    body = "\n\t".join(lines)
    source.write_text(
        f'#include <stdio.h>\n#include "{HEADER}"\nint main(void)\n{{\n\t{body}\n}}\n', "utf-8"
    )
    program = folder / "layout"
    subprocess.run([os.environ.get("CC", "cc"), "-o", program, source], check=True)
    printed = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = {}
    for line in printed.splitlines():
        name, field, number = line.split()
        found.setdefault(name, {})[field] = int(number)
    return found


@pytest.mark.parametrize("name", STRUCTS)
def test_binding_lays_structs_out_as_c_does(layout, name):
    struct = STRUCTS[name]
    offsets = {field: getattr(struct, field).offset for field, *_ in struct._fields_}
    assert dict(offsets, **{".": types.ctypes.sizeof(struct)}) == layout[name]
