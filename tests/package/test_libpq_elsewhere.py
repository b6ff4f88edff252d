"""A libpq outside the system's folders is found through PKG_CONFIG_PATH, and baked in nowhere."""

import glob
import json
import os
import shutil

import pytest

from abi import toolchain
from package import support

HEADERS = ["libpq-fe.h", "postgres_ext.h", "pg_config_ext.h"]


@pytest.fixture
def other_libpq(tmp_path):
    """The system's libpq copied to a prefix of its own, said to be version 17."""
    variables = {
        name: toolchain.run(["pkg-config", "--variable=" + name, "libpq"]).strip()
        for name in ("includedir", "libdir")
    }
    prefix = tmp_path / "opt" / "pg17"
    os.makedirs(prefix / "lib" / "pkgconfig")
    os.makedirs(prefix / "include")
    for name in HEADERS:
        shutil.copy(os.path.join(variables["includedir"], name), prefix / "include")
    for file in glob.glob(os.path.join(variables["libdir"], "libpq.so*")):
        shutil.copy(file, prefix / "lib", follow_symlinks=False)
    (prefix / "lib" / "pkgconfig" / "libpq.pc").write_text(
        f"prefix={prefix}\nName: libpq\nDescription: libpq\nVersion: 17.0\n"
        "Cflags: -I${prefix}/include\nLibs: -L${prefix}/lib -lpq\n",
        "utf-8",
    )
    return prefix


@pytest.mark.slow
def test_libpq_b92_is_found_and_not_baked_in(other_libpq, tmp_path):
    build, prefix = tmp_path / "build", tmp_path / "prefix"
    env = toolchain.environment(PKG_CONFIG_PATH=f"{other_libpq}/lib/pkgconfig")
    words = [
        "-Dexamples=false",
        "-Dtests=false",
        "-Dman=false",
        "-Dlibdir=lib",
        "--buildtype=plain",
    ]
    toolchain.run(["meson", "setup", *words, "--prefix", prefix, build, toolchain.ROOT], env=env)
    found = json.loads(toolchain.run(["meson", "introspect", "--dependencies", build]))
    assert {entry["name"]: entry["version"] for entry in found}["libpq"] == "17.0"
    toolchain.run(["meson", "install", "-C", build, "--quiet"], env=env)
    with open(build / "compile_commands.json", encoding="utf-8") as commands:
        assert f"-I{other_libpq}/include" in commands.read()
    library = prefix / "lib" / "libqretention.so"
    assert support.dynamic(library, "RPATH") == support.dynamic(library, "RUNPATH") == []
    flags = toolchain.run(
        ["pkg-config", "--cflags", "--libs", "libqretention"],
        env=dict(env, PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig:{other_libpq}/lib/pkgconfig"),
    )
    program = tmp_path / "host"
    toolchain.run(
        ["cc", "-o", program, support.HOST, *flags.split()] + [f"-Wl,-rpath-link={other_libpq}/lib"]
    )
    where = f"{prefix}/lib:{other_libpq}/lib"
    assert (
        toolchain.run([program], env=toolchain.environment(LD_LIBRARY_PATH=where)) == support.WORKS
    )
    maps = toolchain.run(["ldd", program], env=toolchain.environment(LD_LIBRARY_PATH=where))
    assert f"{other_libpq}/lib/libpq.so" in maps
