"""Static linking: our archive beside a shared libpq, and everything static that can be had."""

import os

import pytest

from abi import toolchain
from package import support


def link(prefix, program, words):
    toolchain.run(
        ["cc", "-o", program, f"-I{prefix.include}", support.HOST, *words], env=prefix.environment()
    )


def test_static_b74_archive_beside_shared_libpq(prefix, tmp_path):
    program = tmp_path / "host"
    link(
        prefix, program, [prefix.archive, *toolchain.run(["pkg-config", "--libs", "libpq"]).split()]
    )
    assert not any("qretention" in name for name in support.dynamic(program, "NEEDED"))
    assert toolchain.run([program]) == support.WORKS


ARCHIVES = ("qretention", "pq", "pgcommon", "pgport")


def static_words(prefix, folders):
    """pkg-config --static's words: PostgreSQL's libraries and ours as archives."""
    archives = {f"-l{name}": f"-l:lib{name}.a" for name in ARCHIVES}
    words = [archives.get(word, word) for word in prefix.flags("--static", "--libs")]
    return [f"-L{folder}" for folder in folders] + words


def test_static_b74_libpq_too(prefix, tmp_path):
    """pkg-config --static names all that a static libpq wants: ssl, pgcommon, pgport, ..."""
    server = f"/usr/lib/postgresql/{libpq_major()}/lib"  # where Debian keeps the last two
    for name in ("pgcommon", "pgport"):
        if not support.archive_path(name) and not os.path.exists(f"{server}/lib{name}.a"):
            pytest.skip(f"no lib{name}.a, which a static libpq wants: postgresql-server-dev")
    for word in prefix.flags("--static", "--libs"):
        if (
            word.startswith("-l")
            and word[2:] not in ARCHIVES
            and not support.archive_path(word[2:])
        ):
            pytest.skip(f"no library {word[2:]} to link with")
    program = tmp_path / "host"
    link(prefix, program, static_words(prefix, [server]))
    needed = support.dynamic(program, "NEEDED")
    assert not any(name.startswith(("libqretention", "libpq")) for name in needed), needed
    assert toolchain.run([program]) == support.WORKS


def libpq_major():
    return toolchain.run(["pkg-config", "--modversion", "libpq"]).split(".")[0]
