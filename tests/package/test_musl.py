"""Every source file against musl's headers: nothing of glibc's is taken for granted."""

import glob
import os
import shutil

import pytest

from abi import toolchain


@pytest.fixture
def headers(tmp_path):
    """libpq's headers alone: the folder that they lie in may hold glibc's beside them."""
    include = toolchain.run(["pkg-config", "--variable=includedir", "libpq"]).strip()
    for name in ("libpq-fe.h", "postgres_ext.h", "pg_config_ext.h"):
        shutil.copy(os.path.join(include, name), tmp_path)
    return tmp_path


@pytest.mark.skipif(not shutil.which("musl-gcc"), reason="musl-tools is not installed")
def test_musl_compiles_every_file(prefix, headers):
    sources = glob.glob(f"{toolchain.ROOT}/lib/*.c") + [f"{prefix.source}/sql/sql_embedded.c"]
    assert len(sources) > 20
    toolchain.run(
        ["musl-gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
        + ["-Wno-overlength-strings", f"-I{headers}", f"-I{toolchain.ROOT}/include"]
        + [f"-I{toolchain.ROOT}/lib", f"-I{prefix.source}/sql", *sources]
    )


@pytest.mark.skipif(not shutil.which("musl-gcc"), reason="musl-tools is not installed")
def test_musl_takes_the_header_alone(tmp_path):
    source = tmp_path / "host.c"
    source.write_text('#include "qretention.h"\nint main(void) { return QRET_DONE; }\n', "utf-8")
    words = ["musl-gcc", "-static", "-std=c99", *toolchain.STRICT, f"-I{toolchain.ROOT}/include"]
    toolchain.run([*words, "-o", tmp_path / "host", source])
    toolchain.run([tmp_path / "host"])
