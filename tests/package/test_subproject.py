"""As a meson subproject: found through dependency(), with nothing of ours beside it."""

import json
import os

import pytest

from abi import toolchain
from package import support

PROJECT = """project('host', 'c', version: '1.0')
qretention_dep = dependency('libqretention', version: '>= 0.1')
executable('host', 'host.c', dependencies: qretention_dep)
"""
WRAP = "[provide]\ndependency_names = libqretention\n"


@pytest.fixture
def consumer(tmp_path):
    """A project that has the library as a subproject, linked to this tree."""
    folder = tmp_path / "consumer"
    os.makedirs(folder / "subprojects")
    (folder / "meson.build").write_text(PROJECT, "utf-8")
    with open(support.HOST, encoding="utf-8") as source:
        (folder / "host.c").write_text(source.read(), "utf-8")
    os.symlink(toolchain.ROOT, folder / "subprojects" / "libqretention")
    (folder / "subprojects" / "libqretention.wrap").write_text("[wrap-file]\n" + WRAP, "utf-8")
    return folder


def check_targets(build):
    targets = json.loads(toolchain.run(["meson", "introspect", "--targets", build]))
    names = {target["name"] for target in targets}
    assert "host" in names and not names & {"qretention-internal", "broker", "man"}, names
    folders = {os.path.dirname(target["defined_in"]).rsplit("/", 1)[-1] for target in targets}
    assert not folders & {"examples", "tests", "unit", "man"}, folders
    assert json.loads(toolchain.run(["meson", "introspect", "--tests", build])) == []


@pytest.mark.slow
def test_subproject_b75_forced_fallback_builds_and_runs(consumer, tmp_path):
    """Shared first, then static in the same folder: the objects are the same."""
    build = tmp_path / "build"
    toolchain.run(
        ["meson", "setup", "--wrap-mode=forcefallback", "--buildtype=plain"]
        + ["--prefix", tmp_path / "prefix", build, consumer],
        env=toolchain.environment(),
    )
    for kind in ("shared", "static"):
        options = [f"-D{name}default_library={kind}" for name in ("", "libqretention:")]
        toolchain.run(["meson", "configure", build, *options])
        toolchain.run(["meson", "compile", "-C", build, "host"], env=toolchain.environment())
        check_targets(build)
        assert toolchain.run([build / "host"]) == support.WORKS
        needed = support.dynamic(build / "host", "NEEDED")
        assert any("qretention" in name for name in needed) == (kind == "shared")
