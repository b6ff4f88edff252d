"""What the tests of installing and building share: the host, and where things lie."""

import os
import re
import subprocess

from abi import toolchain

HERE = os.path.dirname(os.path.abspath(__file__))
HOST = os.path.join(HERE, "host.c")
WORKS = toolchain.version() + " works\n"


def dynamic(path, what):
    """The values of one kind of entry in an ELF file's dynamic section."""
    text = toolchain.run(["readelf", "--dynamic", "--wide", path])
    return re.findall(rf"\({what}\).*\[(.*)\]", text)


def has_tool(*names):
    return all(
        subprocess.run(["which", name], capture_output=True, check=False).returncode == 0
        for name in names
    )
