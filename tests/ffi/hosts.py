"""The hosts in other languages under examples/: built once a run, then run as programs.

Each takes CONNINFO [CYCLES [STOP_AFTER_MS [NAME=VALUE ...]]] and prints the same lines.
"""

import fcntl
import functools
import os
import shutil
import signal
import subprocess

import pytest

from abi import toolchain

EXAMPLES = os.path.join(toolchain.ROOT, "examples")
FOLDER = os.path.join(toolchain.BUILD, "package", "ffi")
LANGUAGES = ["python", "node", "luajit", "go", "rust"]
OFFLINE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ENETUNREACH", "ETIMEDOUT", "ECONNRESET")
TIMEOUT = 60


def need(*commands):
    for command in commands:
        if not shutil.which(command):
            pytest.skip(f"{command} is not installed")


def source(language, name):
    return os.path.join(EXAMPLES, language, name)


def build_python(_prefix, _folder):
    return ["/usr/bin/python3", source("python", "retention.py")]


def build_luajit(_prefix, _folder):
    need("luajit")
    return ["luajit", source("luajit", "retention.lua")]


def build_node(_prefix, folder):
    """koffi comes from npm into a folder of ours; NODE_PATH leads there."""
    need("node", "npm")
    shutil.copy(source("node", "package.json"), folder)
    if not os.path.isdir(os.path.join(folder, "node_modules", "koffi")):
        words = ["--no-audit", "--no-fund", "--no-update-notifier", "--no-package-lock"]
        done = subprocess.run(
            ["npm", "install", *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        said = done.stdout + done.stderr
        if done.returncode and any(code in said for code in OFFLINE):
            pytest.skip("koffi cannot be fetched: no network")
        assert done.returncode == 0, said
    return ["node", source("node", "retention.js")]


def build_go(prefix, folder):
    need("go")
    program = os.path.join(folder, "retention")
    cache = {name: os.path.join(folder, name) for name in ("GOCACHE", "GOPATH", "GOTMPDIR")}
    for path in cache.values():
        os.makedirs(path, exist_ok=True)
    toolchain.run(
        ["go", "build", "-o", program, "."],
        cwd=os.path.join(EXAMPLES, "go"),
        env=prefix.environment(GOFLAGS="-mod=mod -buildvcs=false", HOME=folder, **cache),
    )
    return [program]


def build_rust(prefix, folder):
    need("rustc")
    program = os.path.join(folder, "retention")
    words = ["--edition=2018", "-D", "warnings", "-L", "native=" + prefix.lib]
    toolchain.run(["rustc", *words, "-o", program, source("rust", "retention.rs")])
    return [program]


BUILDERS = {
    "python": build_python,
    "node": build_node,
    "luajit": build_luajit,
    "go": build_go,
    "rust": build_rust,
}


class Ended:
    """What a host printed: its cycles and its last line, each as a dict of numbers."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        lines = [self.parse(line) for line in out.splitlines()]
        self.cycles = [values for kind, values in lines if kind == "cycle"]
        self.end = next((values for kind, values in lines if kind == "end"), None)

    @staticmethod
    def parse(line):
        kind, *pairs = line.split()
        return kind, {name: int(value) for name, value in (pair.split("=") for pair in pairs)}

    def __repr__(self):
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


@functools.lru_cache(maxsize=None)
def build(language):
    """The command that runs a language's host; built once a worker, and by one worker at a time."""
    folder = os.path.join(FOLDER, language)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return BUILDERS[language](toolchain.install_prefix(), folder)


class Host:
    """One language's host, ready to run."""

    def __init__(self, language, prefix):
        modules = os.path.join(FOLDER, language, "node_modules")
        self.command = build(language)
        self.environment = prefix.environment(NODE_PATH=modules)

    def start(self, *arguments, **environment):
        return subprocess.Popen(  # pylint: disable=consider-using-with
            [*self.command, *map(str, arguments)],
            env=dict(self.environment, **environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, process, timeout=TIMEOUT):
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            out, err = process.communicate()
            raise AssertionError(f"it did not end:\n{out}\n{err}") from None
        return Ended(process.returncode, out, err)

    def __call__(self, *arguments, **environment):
        return self.finish(self.start(*arguments, **environment))
