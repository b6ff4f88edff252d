"""Compilers and an installed prefix for the tests that build programs against the library.

The prefix is made once a run, from a build folder of its own below the main one, and shared by the
workers.
"""

import fcntl
import functools
import os
import re
import shutil
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("QRETENTION_BUILD", os.path.join(ROOT, "build")))
HEADER = os.path.join(ROOT, "include", "qretention.h")
SYMBOLS = os.path.join(ROOT, "lib", "qretention.sym")
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-pedantic-errors", "-Wshadow", "-Werror"]


def run(command, **options):
    """Runs a command that must succeed; what it printed is in the failure. Returns its stdout."""
    command = [str(word) for word in command]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        **options,
    )
    assert (
        done.returncode == 0
    ), f"{' '.join(command)}\nexit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def environment(**extra):
    """Ours without what would steer libpq, the library or the tools."""
    steering = ("PG", "RETENTION_", "RELAY_", "QUEEN_", "PRUNE_", "PARTITION_", "METRICS_")
    tools = (
        "CC",
        "CXX",
        "CFLAGS",
        "CPPFLAGS",
        "LDFLAGS",
        "DESTDIR",
        "MAKEFLAGS",
        "LD_LIBRARY_PATH",
    )
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(steering) and name not in tools
    }
    return dict(kept, LC_ALL="C.UTF-8", **extra)


@functools.lru_cache(maxsize=None)
def version():
    """The project's version, as meson.build says."""
    with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as source:
        return re.search(r"^\s*version: '([^']+)'", source.read(), re.MULTILINE)[1]


def header_text(path=HEADER):
    """A header, with its continued lines joined."""
    with open(path, encoding="utf-8") as source:
        return re.sub(r"\\\n\s*", "", source.read())


def header_constants(path=HEADER):
    """{name: value} of the header's constants, but for those of its version."""
    found = re.findall(r"^#define (QRET_\w+)\s+(\S+)", header_text(path), re.MULTILINE)
    return {
        name: value.strip("()")
        for name, value in found
        if name != "QRET_API" and not name.startswith("QRET_VERSION")
    }


def header_calls(path=HEADER):
    """{name: prototype on one line} of every call that a header declares."""
    text = re.sub(r"/\*.*?\*/", " ", header_text(path), flags=re.DOTALL)
    found = re.findall(r"QRET_API\s+([^;]*?\b(qret_\w+)\([^;]*\));", text)
    return {name: re.sub(r"\s+", " ", prototype).strip() for prototype, name in found}


def symbol_nodes():
    """[(node, [name, ...])] of the symbol file."""
    with open(SYMBOLS, encoding="utf-8") as source:
        text = re.sub(r"/\*.*?\*/", " ", source.read(), flags=re.DOTALL)
    nodes = re.findall(r"(\w[\w.]*)\s*\{(.*?)\}", text, re.DOTALL)
    return [(node, re.findall(r"\b(qret_\w+);", body)) for node, body in nodes]


def compilers(languages=("c",)):
    """The compilers that are there; gcc's must be."""
    names = {"c": ("gcc", "clang"), "c++": ("g++", "clang++")}
    return [name for language in languages for name in names[language] if shutil.which(name)]


class Prefix:
    """Where the library is installed, with the flags and the environment to build and run there."""

    def __init__(self, path, source):
        self.path = path
        self.source = source
        self.lib = os.path.join(path, "lib")
        self.include = os.path.join(path, "include")
        self.shared = os.path.join(self.lib, "libqretention.so")
        self.archive = os.path.join(self.lib, "libqretention.a")
        self.man = os.path.join(path, "share", "man")

    def environment(self, **extra):
        pkg_config = os.path.join(self.lib, "pkgconfig")
        return environment(PKG_CONFIG_PATH=pkg_config, LD_LIBRARY_PATH=self.lib, **extra)

    def flags(self, *wanted, **extra):
        """What pkg-config says, as words."""
        return run(["pkg-config", *wanted, "libqretention"], env=self.environment(**extra)).split()

    def compile(self, source, program, compiler="cc", words=()):
        """Builds one source file as the README says, with pkg-config alone."""
        run(
            [compiler, *words, "-o", program, source, *self.flags("--cflags", "--libs")],
            env=self.environment(),
        )
        return program

    def run(self, *command, **options):
        return run(command, env=self.environment(), **options)


def _configure(folder, prefix):
    if os.path.exists(os.path.join(folder, "build.ninja")):
        return
    words = ["-Dlibdir=lib", "-Dtests=false", "-Dman=true", "--buildtype=debug"]
    run(["meson", "setup", *words, "--prefix=" + prefix, folder, ROOT], env=environment())


@functools.lru_cache(maxsize=None)
def install_prefix():
    """Builds and installs what has changed, one worker at a time."""
    folder = os.path.join(BUILD, "package")
    prefix = os.path.join(folder, "prefix")
    build = os.path.join(folder, "build")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _configure(build, prefix)
        run(["meson", "compile", "-C", build], env=environment())
        run(["meson", "install", "-C", build, "--no-rebuild", "--only-changed"], env=environment())
    return Prefix(prefix, build)


def be_patient(items, conftest):
    """Tests of a folder may wait for the prefix to be built, on a machine that is busy."""
    folder = os.path.dirname(conftest)
    for item in items:
        if str(item.path).startswith(folder) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(600))


def elf_names(path, *words):
    """Names that nm lists, without versions."""
    listed = run(["nm", "--defined-only", "--format=posix", *words, path])
    rows = [line.split() for line in listed.splitlines() if not line.endswith(":")]
    return {row[0]: row[1] for row in rows if len(row) >= 2}


if __name__ == "__main__":
    sys.stdout.write(install_prefix().path + "\n")
