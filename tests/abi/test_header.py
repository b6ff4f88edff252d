"""The header by itself: every standard it promises, both compilers, warnings as errors."""

import os

import pytest

from abi import toolchain

HERE = os.path.dirname(os.path.abspath(__file__))
USE = os.path.join(HERE, "header_use.c")
C = ["c99", "c11", "c17", "c2x"]
CXX = ["c++11", "c++14", "c++17", "c++20"]
LANGUAGES = [(compiler, "c", standard) for compiler in toolchain.compilers() for standard in C]
LANGUAGES += [
    (compiler, "c++", standard) for compiler in toolchain.compilers(("c++",)) for standard in CXX
]
SOURCES = {
    "alone": '#include "qretention.h"\n',
    "first": '#include "qretention.h"\n#include <stdio.h>\n#include <stdlib.h>\n',
    "last": "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n"
    '#include "qretention.h"\n',
    "twice": '#include "qretention.h"\n#include "qretention.h"\n',
}
EXTRA = ["-Wold-style-cast", "-Wzero-as-null-pointer-constant"]


def compile_to_nothing(compiler, language, standard, source, words=()):
    toolchain.run(
        [compiler, "-x", language, f"-std={standard}", *toolchain.STRICT, *words]
        + [f"-I{toolchain.ROOT}/include", "-fsyntax-only", source]
    )


@pytest.mark.parametrize("compiler,language,standard", LANGUAGES)
def test_header_compiles(tmp_path, compiler, language, standard):
    for name, text in SOURCES.items():
        source = tmp_path / name
        # An empty translation unit is pedantic nonsense: one declaration of its own.
        source.write_text(text + "extern int own_declaration;\n", "utf-8")
        compile_to_nothing(compiler, language, standard, source)


@pytest.mark.parametrize("compiler", toolchain.compilers(("c++",)))
def test_header_has_no_old_style_cxx(tmp_path, compiler):
    source = tmp_path / "host.cc"
    source.write_text(
        SOURCES["alone"] + "int64_t off = QRET_CUTOFF_OFF;\nint error = QRET_ERR_SQL;\n", "utf-8"
    )
    compile_to_nothing(compiler, "c++", "c++11", source, EXTRA)


@pytest.mark.parametrize("compiler,language,standard", LANGUAGES)
def test_header_links_and_runs(tmp_path, prefix, compiler, language, standard):
    program = tmp_path / "host"
    toolchain.run(
        [
            compiler,
            "-x",
            language,
            f"-std={standard}",
            *toolchain.STRICT,
            "-o",
            program,
            USE,
            "-x",
            "none",
        ]
        + prefix.flags("--cflags", "--libs"),
        env=prefix.environment(),
    )
    assert prefix.run(program).startswith(toolchain.version())


def test_header_names_nothing_but_its_own(tmp_path):
    """No macro and no declaration outside qret_ and QRET_ comes with it."""
    source = tmp_path / "bare.c"
    source.write_text("#include <stddef.h>\n#include <stdint.h>\n", "utf-8")
    words = ["gcc", "-std=c11", "-dM", "-E", f"-I{toolchain.ROOT}/include"]
    before = set(toolchain.run([*words, source]).splitlines())
    source.write_text('#include "qretention.h"\n', "utf-8")
    added = set(toolchain.run([*words, source]).splitlines()) - before
    assert added and all(
        line.split()[1].startswith(("QRET_", "QRETENTION_H")) for line in added
    ), added


def test_header_includes_only_stddef_and_stdint():
    includes = [
        line for line in toolchain.header_text().splitlines() if line.startswith("#include")
    ]
    assert includes == ["#include <stddef.h>", "#include <stdint.h>"]


def test_header_says_since_when_of_every_declaration():
    text = toolchain.header_text()
    assert text.count("Since 0.") >= len(toolchain.header_calls())
