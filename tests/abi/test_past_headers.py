"""Programs of past releases: built with their headers, run on the library of today."""

import glob
import os
import re

import pytest

from abi import toolchain
from hosts.programs import fill

HERE = os.path.dirname(os.path.abspath(__file__))
HEADERS = sorted(glob.glob(os.path.join(HERE, "qretention-*.h")))


def release(header):
    return re.search(r"qretention-([\d.]+)\.h$", header)[1]


@pytest.mark.parametrize("header", HEADERS, ids=release)
def test_past_program_runs_on_this_library(db, prefix, tmp_path, header):
    """Built against the header alone; the dynamic linker brings today's library."""
    fill(db, segments=20)
    (tmp_path / "qretention.h").write_text(toolchain.header_text(header), "utf-8")
    program = tmp_path / "host"
    toolchain.run(
        ["cc", "-std=c99", *toolchain.STRICT, f"-I{tmp_path}", "-o", program]
        + [os.path.join(HERE, "past_host.c"), f"-L{prefix.lib}", "-lqretention"]
    )
    said = dict(word.split("=") for word in prefix.run(program, db.dsn).split())
    assert said["compiled"] == release(header) and said["running"] == toolchain.version()
    assert (said["stepped"], said["swept"]) == ("5", "15")
    assert said["fence"] == "1" and said["size"] == "216"
    assert db.one("SELECT count(*) FROM queen.log_segments") == 0


@pytest.mark.parametrize("header", HEADERS, ids=release)
def test_past_declarations_are_still_there(header):
    """Every call, constant and field of a past header stands in today's, unchanged."""
    assert set(toolchain.header_calls(header).items()) <= set(toolchain.header_calls().items())
    constants = toolchain.header_constants(header)
    assert constants and constants.items() <= toolchain.header_constants().items()
    assert typedefs(header) and typedefs(header) <= typedefs(toolchain.HEADER)


def typedefs(header):
    return {
        re.sub(r"\s+", " ", text)
        for text in re.findall(r"typedef ([^;]+);", toolchain.header_text(header))
    }


def test_past_header_of_this_release_is_frozen():
    """The release that is being made has its header here too."""
    assert toolchain.version() in [release(header) for header in HEADERS]


@pytest.mark.parametrize("header", HEADERS, ids=release)
def test_past_struct_fields_keep_their_place(tmp_path, header):
    """Offsets and sizes up to the end of a past struct, as the compiler lays both out."""
    current = layouts(toolchain.HEADER, tmp_path)
    for place, value in layouts(header, tmp_path).items():
        if place.endswith("."):
            assert current[place] >= value, place
        else:
            assert current[place] == value, place


def layouts(header, folder):
    """{"struct.field": offset, "struct.": size} as the compiler lays a header out."""
    text = re.sub(r"/\*.*?\*/", " ", toolchain.header_text(header), flags=re.DOTALL)
    lines = []
    for struct, body in re.findall(r"struct (qret_\w+) \{(.*?)\};", text, re.DOTALL):
        lines.append(f'printf("{struct}. %zu\\n", sizeof(struct {struct}));')
        for declaration in body.split(";"):
            for word in re.sub(r"\[\d+\]", "", declaration).replace("*", " ").split(","):
                if word.split():
                    name = word.split()[-1]
                    lines.append(
                        f'printf("{struct}.{name} %zu\\n", offsetof(struct {struct}, {name}));'
                    )
    source, program = folder / "layouts.c", folder / "layouts"
    body = "\n".join(lines)
    source.write_text(
        f'#include <stdio.h>\n#include "{header}"\nint main(void)\n{{\n{body}\n}}\n', "utf-8"
    )
    toolchain.run(["cc", "-o", program, source])
    return dict(
        (line.split()[0], int(line.split()[1])) for line in toolchain.run([program]).splitlines()
    )
