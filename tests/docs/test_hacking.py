"""HACKING.md's map has everything on it."""

import glob
import os
import re

from abi import toolchain
from docs import extract

HACKING = os.path.join(toolchain.ROOT, "HACKING.md")


def test_hacking_maps_every_file_of_the_library():
    text = extract.read(HACKING)
    files = {os.path.basename(path) for path in glob.glob(f"{toolchain.ROOT}/lib/*.c")}
    mapped = set(re.findall(r"`(\w+\.c)`", text))
    assert files <= mapped, f"not on the map: {sorted(files - mapped)}"
    assert mapped <= files | {"command_step.c"}, f"gone: {sorted(mapped - files)}"


def test_hacking_lists_every_suite():
    text = extract.read(HACKING)
    for path in glob.glob(f"{toolchain.ROOT}/tests/*/test_*.py"):
        suite = "tests/" + os.path.basename(os.path.dirname(path))
        assert f"`{suite}`" in text, suite


def test_hacking_names_files_that_exist():
    for name in re.findall(
        r"`((?:lib|tests|examples|man|include|sql)/[\w./-]+)`", extract.read(HACKING)
    ):
        is_example = name == "tests/sql/test_x.py"
        assert is_example or os.path.exists(os.path.join(toolchain.ROOT, name)), name
