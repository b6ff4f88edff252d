"""The binary interface against the dump of the last release, compared by abidiff."""

import os
import platform
import re
import shutil
import subprocess

import pytest

from abi import toolchain

HERE = os.path.dirname(os.path.abspath(__file__))
DUMP = os.path.join(HERE, "libqretention.abi")
SUPPRESSIONS = os.path.join(HERE, "suppressions.abignore")
CHANGE, INCOMPATIBLE = 4, 8

pytestmark = [
    pytest.mark.skipif(not shutil.which("abidiff"), reason="abigail-tools is not installed"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the dump is of x86-64"),
]


@pytest.fixture(scope="module")
def today(prefix, tmp_path_factory):
    """The same dump of the library as it is now."""
    path = tmp_path_factory.mktemp("dump") / "today.abi"
    text = toolchain.run(["sh", os.path.join(HERE, "freeze.sh"), "--dump", prefix.path])
    path.write_text(text, "utf-8")
    return path


def compare(dump, today, suppressed=True):
    """abidiff's exit code and text."""
    words = ["--suppressions", SUPPRESSIONS] if suppressed else []
    done = subprocess.run(
        ["abidiff", *words, dump, today],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def dump_text():
    with open(DUMP, encoding="utf-8") as source:
        return source.read()


@pytest.fixture
def altered(tmp_path):
    """Writes an altered dump: what another past would have looked like."""

    def write(pattern, replacement, flags=re.DOTALL):
        text, count = re.subn(pattern, replacement, dump_text(), count=1, flags=flags)
        assert count == 1
        path = tmp_path / "altered.abi"
        path.write_text(text, "utf-8")
        return path

    return write


def test_dump_shows_no_break(today):
    code, text = compare(DUMP, today)
    assert code == 0, text


def test_dump_is_of_this_interface():
    """Whoever adds a call freezes the interface anew with the release: tests/abi/freeze.sh."""
    dumped = set(re.findall(r"elf-symbol name='(qret_\w+)'", dump_text()))
    assert dumped == set(toolchain.header_calls())
    assert not re.search(r"(path|comp-dir-path)='[^']*/", dump_text())


def test_dump_notices_a_call_that_went(today, altered):
    past = altered(
        r"(<elf-symbol name=')qret_attach('[^>]*/>)", r"\1qret_bygone\2\n    \1qret_attach\2"
    )
    code, text = compare(past, today)
    assert code & INCOMPATIBLE and "qret_bygone" in text


def test_dump_notices_a_field_that_moved(today, altered):
    past = altered(r"(layout-offset-in-bits=')128('[^>]*>\s*<var-decl name='queues')", r"\g<1>64\2")
    code, text = compare(past, today)
    assert code & CHANGE, text


@pytest.mark.parametrize(
    "struct,bits,last,less",
    [("qret_cycle_report", 1728, "oldest_overdue_us", 1664), ("qret_poll_fd", 64, "events", 32)],
)
def test_dump_notices_a_struct_that_grew(today, altered, struct, bits, last, less):
    """The same struct without its last field, as an earlier release might have had it."""
    past = altered(
        rf"(<class-decl name='{struct}' size-in-bits='){bits}('.*?)\s*"
        rf"<data-member [^>]*>\s*<var-decl name='{last}'[^>]*/>\s*</data-member>",
        rf"\g<1>{less}\2",
    )
    code, text = compare(past, today)
    assert code & CHANGE and struct in text


def test_dump_lets_a_call_be_added(today, altered):
    """What a past release did not have yet is no break: the suppression is what says so."""
    past = altered(
        r"\s*<elf-symbol name='qret_wait'[^>]*/>(.*)"
        r"<function-decl name='qret_wait'.*?</function-decl>",
        r"\1",
    )
    code, text = compare(past, today)
    assert code == 0, text
    code, text = compare(past, today, suppressed=False)
    assert code & CHANGE and "qret_wait" in text
