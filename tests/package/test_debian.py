"""The Debian packages: built from this tree, and without errors of lintian's."""

import fcntl
import os
import re
import shutil
import subprocess

import pytest

from abi import toolchain
from package import support

DEBIAN = os.path.join(toolchain.ROOT, "packaging", "debian")
PACKAGES = ["libqretention-dev", "libqretention0", "qretention"]


def read(name):
    with open(os.path.join(DEBIAN, name), encoding="utf-8") as file:
        return file.read()


def test_debian_version_is_the_project_s():
    assert re.match(r"libqretention \(([\d.]+)-\d+\)", read("changelog"))[1] == toolchain.version()


def test_debian_symbols_are_those_of_the_symbol_file():
    listed = re.findall(r"\(symver\)(\S+) [\d.]+", read("libqretention0.symbols"))
    assert listed == [node for node, _ in toolchain.symbol_nodes()]


def test_debian_license_is_the_project_s():
    with open(os.path.join(toolchain.ROOT, "LICENSE"), encoding="utf-8") as file:
        words = re.sub(r"\s+", " ", file.read())
    for sentence in ("Permission is hereby granted, free of charge", "The libqretention authors"):
        assert sentence in words and sentence in re.sub(r"\s+", " ", read("copyright"))


def build(folder):
    script = os.path.join(toolchain.ROOT, "packaging", "build-deb.sh")
    options = dict(DEB_BUILD_OPTIONS="noddebs noopt parallel=2")
    toolchain.run(["sh", script, folder], env=toolchain.environment(**options))


@pytest.fixture(scope="module")
def packages(tmp_path_factory, worker_id):
    """{package: file}, built once a run, by whichever worker is first."""
    if not support.has_tool("dpkg-buildpackage", "dh", "fakeroot"):
        pytest.skip("needs dpkg-dev, debhelper and fakeroot")
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "debian"
    os.makedirs(folder, exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(folder.glob("*.changes")):
            build(folder)
    found = {path.name.split("_")[0]: str(path) for path in folder.glob("*.deb")}
    return dict(found, changes=str(next(folder.glob("*.changes"))))


def contents(package):
    listed = toolchain.run(["dpkg-deb", "--contents", package]).splitlines()
    return {line.split()[5].lstrip(".") for line in listed if not line.split()[5].endswith("/")}


def test_debian_tree_is_not_packed_into_itself(tmp_path):
    """Where the packages are built in a folder of the tree."""
    root, tools = tmp_path / "tree", tmp_path / "tools"
    shutil.copytree(os.path.join(toolchain.ROOT, "packaging"), root / "packaging")
    shutil.copy(os.path.join(toolchain.ROOT, "meson.build"), root)
    tools.mkdir()
    (tools / "dpkg-buildpackage").write_text("#!/bin/sh\n", "utf-8")
    (tools / "dpkg-buildpackage").chmod(0o755)
    env = toolchain.environment()
    env["PATH"] = f"{tools}:{env['PATH']}"
    script = root / "packaging" / "build-deb.sh"
    for _ in range(2):
        toolchain.run(["sh", script, root / "deb"], env=env)
        (archive,) = (root / "deb").glob("*.orig.tar.gz")
        names = toolchain.run(["tar", "-tzf", archive]).splitlines()
        assert any(name.endswith("/meson.build") for name in names)
        assert not any("/deb/" in name for name in names), names


@pytest.mark.slow
def test_debian_builds_and_lintian_finds_no_error(packages):
    assert sorted(set(packages) - {"changes"}) == PACKAGES
    if not support.has_tool("lintian"):
        pytest.skip("lintian is not installed")
    done = subprocess.run(
        ["lintian", "--allow-root", "--fail-on", "error", packages["changes"]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=toolchain.environment(),
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_debian_packages_hold_what_their_names_say(packages):
    library = contents(packages["libqretention0"])
    assert any(name.endswith(f"/libqretention.so.{toolchain.version()}") for name in library)
    assert not any(name.endswith((".h", ".a", ".so")) for name in library)
    development = contents(packages["libqretention-dev"])
    assert {"/usr/include/qretention.h", "/usr/share/man/man3/qret_step.3.gz"} <= development
    assert any(name.endswith("/libqretention.pc") for name in development)
    program = contents(packages["qretention"])
    assert {"/usr/bin/qretention", "/usr/share/man/man1/qretention.1.gz"} <= program
    depends = toolchain.run(["dpkg-deb", "--field", packages["qretention"], "Depends"])
    assert "libqretention0 (>= 0.1.0)" in depends
