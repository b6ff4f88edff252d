"""Struct layouts are what hosts in other languages wrote down, for 64 and for 32 bits."""

import os
import re

import pytest

from abi import toolchain

HERE = os.path.dirname(os.path.abspath(__file__))
LAYOUT = os.path.join(HERE, "layout.c")


def check(compiler, *words):
    toolchain.run(
        [compiler, "-std=c11", "-Werror", f"-I{toolchain.ROOT}/include", *words]
        + ["-c", "-o", os.devnull, LAYOUT]
    )


@pytest.mark.parametrize("compiler", toolchain.compilers())
def test_layout_is_the_documented_one(compiler):
    check(compiler)


@pytest.mark.parametrize("compiler", toolchain.compilers())
def test_layout_on_32_bits(tmp_path, compiler):
    probe = tmp_path / "probe.c"
    probe.write_text(
        "#include <stdint.h>\n#include <stddef.h>\nint main(void) { return 0; }\n", "utf-8"
    )
    try:
        toolchain.run([compiler, "-m32", "-c", "-o", os.devnull, probe])
    except AssertionError:
        pytest.skip("no 32-bit headers: install gcc-multilib")
    check(compiler, "-m32")


def test_layout_test_notices_a_moved_field(tmp_path):
    """The check itself can fail: a field in front of another moves it."""
    text, count = re.subn(r"int64_t\s+queues;", "int64_t extra, queues;", toolchain.header_text())
    assert count == 1
    (tmp_path / "qretention.h").write_text(text, "utf-8")
    with pytest.raises(AssertionError, match="moved"):
        toolchain.run(["gcc", "-std=c11", f"-I{tmp_path}", "-c", "-o", os.devnull, LAYOUT])


def test_layout_lists_every_field():
    """A field that is added to the header is added to layout.c."""
    with open(LAYOUT, encoding="utf-8") as source:
        text = source.read()
    for struct, fields in struct_fields().items():
        for field in fields:
            assert f"AT({struct}, {field}," in text, f"{struct}.{field} is not in layout.c"


def struct_fields():
    text = re.sub(r"/\*.*?\*/", " ", toolchain.header_text(), flags=re.DOTALL)
    found = {}
    for struct, body in re.findall(r"struct (qret_\w+) \{(.*?)\};", text, re.DOTALL):
        names = []
        for declaration in body.split(";"):
            words = re.sub(r"\[\d+\]", "", declaration).replace("*", " ").split(",")
            names += [word.split()[-1] for word in words if word.split()]
        found[struct] = names
    assert len(found) == 7
    return found
