"""What is exported, and what is not: header, symbol file, shared library and archive agree."""

import re

import pytest

from abi import toolchain

HOST_NAMES = ("list_append", "log_error")


def internal_names(prefix):
    """Every global name of the library's own objects, before anything is hidden."""
    names = toolchain.elf_names(f"{prefix.source}/lib/libqretention_internal.a", "-g")
    return {name for name in names if not name.startswith("qret_") and re.fullmatch(r"\w+", name)}


def exported(prefix):
    names = toolchain.elf_names(prefix.shared, "-D")
    return {name for name, kind in names.items() if kind != "A"}


def test_symbols_of_header_and_symbol_file_agree():
    listed = [name for _, names in toolchain.symbol_nodes() for name in names]
    assert sorted(listed) == sorted(set(listed)), "a name stands in two nodes"
    assert set(listed) == set(toolchain.header_calls())


def test_symbols_of_the_shared_library_are_the_header_s(prefix):
    names = {name.split("@")[0] for name in exported(prefix)}
    assert names == set(toolchain.header_calls())


def test_symbols_carry_the_node_of_their_release(prefix):
    expected = {f"{name}@@{node}" for node, names in toolchain.symbol_nodes() for name in names}
    assert exported(prefix) == expected


def test_symbols_of_the_archive_are_the_header_s(prefix):
    names = toolchain.elf_names(prefix.archive, "-g")
    assert set(names) == set(toolchain.header_calls())
    members = toolchain.run(["ar", "t", prefix.archive]).split()
    assert members == ["qretention.o"]


def test_symbols_nodes_are_sorted_and_hide_the_rest():
    nodes = toolchain.symbol_nodes()
    assert [node for node, _ in nodes] == sorted(node for node, _ in nodes)
    for node, names in nodes:
        assert names == sorted(names), node
    assert toolchain.header_text(toolchain.SYMBOLS).count("local:") == 1


def test_symbols_node_belongs_to_the_version():
    major_minor = toolchain.version().rsplit(".", 1)[0]
    assert toolchain.symbol_nodes()[-1][0] <= f"LIBQRETENTION_{major_minor}"


def test_soname_is_zero_and_no_path_is_baked_in(prefix):
    for file in (prefix.shared, f"{prefix.path}/bin/qretention"):
        dynamic = toolchain.run(["readelf", "--dynamic", file])
        assert not re.search(r"\((RPATH|RUNPATH)\)", dynamic), dynamic
    soname = re.search(r"SONAME.*\[(.*)\]", toolchain.run(["readelf", "-d", prefix.shared]))
    assert soname[1] == "libqretention.so.0"


@pytest.fixture
def crowded_host(tmp_path, prefix):
    """A host that has a function of each internal name of ours, and of the classics."""
    names = sorted(internal_names(prefix) | set(HOST_NAMES))
    assert len(names) > 100
    lines = ["#include <qretention.h>", "#include <stdio.h>", ""]
    lines += [f"int {name}(void);\nint {name}(void) {{ return 1; }}" for name in names]
    lines += ["int main(void)", "{", "\tstruct qret_ctx *ctx = NULL;"]
    lines += ["\tif (qret_ctx_new(&ctx) != QRET_DONE) return 1;"]
    lines += ['\tif (qret_set_option(ctx, "batch_size", "7") != QRET_DONE) return 2;']
    lines += ['\tif (qret_set_option(ctx, "batch_size", "x") != QRET_ERR_OPTION) return 3;']
    lines += ["\tputs(qret_error_message(ctx));", "\tqret_ctx_free(ctx);"]
    lines += ["\treturn list_append() + log_error() == 2 ? 0 : 4;", "}", ""]
    source = tmp_path / "host.c"
    source.write_text("\n".join(lines), "utf-8")
    return source


@pytest.mark.parametrize("how", ["shared", "archive"])
@pytest.mark.parametrize("compiler", toolchain.compilers())
def test_symbols_b76_a_host_may_have_names_of_ours(prefix, crowded_host, tmp_path, how, compiler):
    program = tmp_path / "host"
    library = [prefix.shared] if how == "shared" else [prefix.archive, "-lpq"]
    toolchain.run(
        [
            compiler,
            "-w",
            "-fno-builtin",
            f"-I{prefix.include}",
            "-o",
            program,
            crowded_host,
            *library,
        ]
    )
    assert "batch_size" in prefix.run(program)
