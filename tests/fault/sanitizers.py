"""Builds of the library with a sanitizer, and small C hosts on top of them."""

import fcntl
import os
import platform
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.join(ROOT, "include")


def run(command, **options):
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options
    )
    if done.returncode != 0:
        raise RuntimeError(" ".join(command) + "\n" + done.stdout)


def library(sanitizer):
    """The folder of libqretention.so built with it ("thread", "address,undefined")."""
    folder = os.path.join(ROOT, "build-" + sanitizer.replace(",", "-"))
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, ".lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(folder, "build.ninja")):
            run(
                ["meson", "setup", folder, ROOT, "-Db_sanitize=" + sanitizer, "-Db_lundef=false"]
                + ["-Dexamples=false", "-Dtests=false", "-Doptimization=1"],
                env=dict(os.environ, CC="gcc"),
            )
        run(["ninja", "-C", folder])
    return os.path.join(folder, "lib")


def host(name, sanitizer, folder):
    """Compiles name.c against that library into folder; the command that runs it."""
    lib = library(sanitizer)
    program = os.path.join(str(folder), name)
    run(
        ["gcc", "-g", "-O1", "-fsanitize=" + sanitizer, "-I", INCLUDE, "-o", program]
        + [os.path.join(HERE, name + ".c"), os.path.join(lib, "libqretention.so.0")]
        + ["-Wl,-rpath," + lib, "-pthread"]
    )
    # The sanitizers' shadow memory does not go with every layout that randomisation finds.
    return ["setarch", platform.machine(), "-R", program]


def interposer(folder, name="interpose"):
    """Compiles name.c into a library for LD_PRELOAD; its path."""
    path = os.path.join(str(folder), name + ".so")
    source = os.path.join(HERE, name + ".c")
    run(["gcc", "-D_GNU_SOURCE", "-g", "-O1", "-shared", "-fPIC", "-o", path, source, "-ldl"])
    return path
