"""What an install puts where, and that it is enough to build on without the source tree."""

import os
import re

import pytest

from abi import toolchain
from package import support


def listing(folder):
    found = set()
    for base, _, files in os.walk(folder):
        found |= {os.path.relpath(os.path.join(base, name), folder) for name in files}
    return found


def test_prefix_holds_what_it_should(prefix):
    version = toolchain.version()
    files = {name for name in listing(prefix.path) if not name.startswith("share/man/")}
    assert files == {
        "bin/qretention",
        "include/qretention.h",
        "lib/libqretention.a",
        "lib/libqretention.so",
        "lib/libqretention.so.0",
        f"lib/libqretention.so.{version}",
        "lib/pkgconfig/libqretention.pc",
    }
    assert os.readlink(prefix.shared) == "libqretention.so.0"


def test_prefix_versions_agree(prefix):
    version = toolchain.version()
    header = toolchain.header_text(os.path.join(prefix.include, "qretention.h"))
    parts = [
        re.search(rf"#define QRET_VERSION_{name} (\d+)", header)[1]
        for name in ("MAJOR", "MINOR", "PATCH")
    ]
    assert ".".join(parts) == version
    assert f'#define QRET_VERSION "{version}"' in header
    assert prefix.flags("--modversion") == [version]
    assert prefix.run(f"{prefix.path}/bin/qretention", "--version") == f"qretention {version}\n"


def test_prefix_keeps_libpq_private(prefix):
    assert prefix.flags("--libs") == [f"-L{prefix.lib}", "-lqretention"]
    assert prefix.flags("--print-requires") == []
    given = prefix.flags("--static", "--libs")
    assert given.index("-lqretention") < given.index("-lpq")


def test_prefix_needs_only_libpq_and_libc(prefix):
    needed = support.dynamic(prefix.shared, "NEEDED")
    assert all(re.match(r"lib(pq|c|pthread|rt)\.so|ld-", name) for name in needed), needed


@pytest.mark.parametrize("compiler", toolchain.compilers())
def test_prefix_builds_and_runs_a_host(prefix, tmp_path, compiler):
    words = ["-std=c99", *toolchain.STRICT]
    program = prefix.compile(support.HOST, tmp_path / "host", compiler, words)
    assert prefix.run(program, cwd=tmp_path) == support.WORKS
    assert support.dynamic(program, "RUNPATH") == []


def test_prefix_names_no_source_tree(prefix):
    """Text files that are installed do not say where they were built."""
    for name in listing(prefix.path):
        if name.endswith((".pc", ".h")) or "/man/" in name:
            with open(os.path.join(prefix.path, name), encoding="utf-8") as file:
                text = file.read().replace(prefix.path, "")
            assert toolchain.ROOT not in text, name
