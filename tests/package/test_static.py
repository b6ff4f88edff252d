"""Static linking: the words of pkg-config --static, our archive, and a libpq that is static too."""

import json
import os

import pytest

from abi import toolchain
from package import support

ARCHIVES = ("qretention", "pq", "pgcommon", "pgport")
SETUP = ["meson", "setup", "-Dexamples=false", "-Dtests=false", "-Dman=false", "-Dlibdir=lib"]


def link(prefix, program, words):
    toolchain.run(
        ["cc", "-o", program, f"-I{prefix.include}", support.HOST, *words], env=prefix.environment()
    )


def test_static_b74_words_link_as_they_stand(prefix, tmp_path):
    """Whatever of Debian's packages is installed beside libpq-dev."""
    link(prefix, tmp_path / "host", prefix.flags("--static", "--libs"))
    assert prefix.run(tmp_path / "host") == support.WORKS


def test_static_b74_archive_with_the_same_words(prefix, tmp_path):
    words = prefix.flags("--static", "--libs")
    words[words.index("-lqretention")] = "-l:libqretention.a"
    link(prefix, tmp_path / "host", words)
    assert not any("qretention" in name for name in support.dynamic(tmp_path / "host", "NEEDED"))
    assert toolchain.run([tmp_path / "host"]) == support.WORKS


def test_static_b74_libpq_too(prefix, tmp_path):
    """Where its archive's parts are there, --static names them all: ssl, pgcommon, pgport, ..."""
    words = prefix.flags("--static", "--libs")
    if "-lpgcommon" not in words:
        pytest.skip("postgresql-server-dev, libkrb5-dev or libldap-dev is not installed")
    program = tmp_path / "host"
    link(prefix, program, [f"-l:lib{w[2:]}.a" if w[2:] in ARCHIVES else w for w in words])
    needed = support.dynamic(program, "NEEDED")
    assert not any(name.startswith(("libqretention", "libpq")) for name in needed), needed
    assert toolchain.run([program]) == support.WORKS


def configured(folder, libs_private, *words):
    """pkg-config's (--libs --static, --print-requires-private) beside a libpq.pc that says this."""
    include = toolchain.run(["pkg-config", "--variable=includedir", "libpq"]).strip()
    libdir = toolchain.run(["pkg-config", "--variable=libdir", "libpq"]).strip()
    (folder / "libpq.pc").write_text(
        f"libdir={libdir}\nName: libpq\nDescription: libpq\nVersion: 17.0\n"
        f"Cflags: -I{include}\nLibs: -lpq\nLibs.private: {libs_private}\n",
        "utf-8",
    )
    build = folder / "build"
    env = toolchain.environment(PKG_CONFIG_PATH=str(folder))
    toolchain.run([*SETUP, *words, build, toolchain.ROOT], env=env)
    asked = dict(env, PKG_CONFIG_PATH=f"{build}/meson-private:{folder}")
    return [
        toolchain.run(["pkg-config", *question, "libqretention"], env=asked).split()
        for question in (("--static", "--libs"), ("--print-requires-private",))
    ]


def test_static_b74_words_of_libpq_are_taken_over_where_they_link(tmp_path):
    words, required = configured(tmp_path, "-lm")
    assert words[-2:] == ["-lpq", "-lm"] and required[0] == "libpq"


@pytest.mark.parametrize("said, option", [("-lnowhere", "auto"), ("-lm", "disabled")])
def test_static_b74_else_libpq_is_named_alone(tmp_path, said, option):
    words, required = configured(tmp_path, said, f"-Dstatic_libpq={option}")
    assert words[-1] == "-lpq" and required == []


@pytest.mark.parametrize("compiler", toolchain.compilers())
def test_static_archive_is_of_machine_code_where_a_build_asks_for_lto(tmp_path, compiler):
    """As distributions ask, both ways: the archive is made by programs that can read nothing else."""
    env = dict(toolchain.environment(CFLAGS="-flto"), CC=compiler)
    build = tmp_path / "build"
    words = ["-Db_lto=true", "-Dstatic_libpq=disabled"]
    toolchain.run([*SETUP, *words, build, toolchain.ROOT], env=env)
    with open(build / "compile_commands.json", encoding="utf-8") as file:
        commands = [row for row in json.load(file) if "qretention_internal" in row["output"]]
    assert len(commands) > 40
    for row in commands:
        wishes = [word for word in row["command"].split() if "lto" in word and word[:2] == "-f"]
        assert "-flto" in wishes and wishes[-1] == "-fno-lto", row
    (one,) = [row for row in commands if row["file"].endswith("/clock.c")]
    toolchain.run(["sh", "-c", one["command"]], cwd=build)
    sections = toolchain.run(["readelf", "--sections", "--wide", build / one["output"]])
    assert ".text" in sections and "lto" not in sections
