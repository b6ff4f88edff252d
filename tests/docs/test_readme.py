"""What the README says is what happens: its host, its snippets, its table of options."""

import os
import re
import shutil
import signal
import subprocess

import pytest

from abi import toolchain
from docs import extract, options_table
from ffi import hosts
from hosts.programs import fill

SNIPPETS = {"python": "python", "js": "node", "lua": "luajit", "go": "go", "rust": "rust"}


def libpq_environment(db):
    parts = dict(re.findall(r"(\w+)='?([^' ]+)'?", db.dsn))
    return {
        "PGHOST": parts["host"],
        "PGPORT": parts["port"],
        "PGDATABASE": parts["dbname"],
        "PGUSER": parts["user"],
    }


def test_readme_host_is_short():
    code = [line for line in extract.readme_block("c").splitlines() if line.strip()]
    assert len(code) <= 25


@pytest.mark.parametrize("compiler", toolchain.compilers())
def test_readme_host_builds_and_runs_from_the_prefix(db, prefix, tmp_path, compiler):
    """With no source tree in sight: the prefix, pkg-config and the compiler."""
    fill(db, segments=20)
    source = tmp_path / "host.c"
    source.write_text(extract.readme_block("c"), "utf-8")
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-D_POSIX_C_SOURCE=200809L"]
    program = prefix.compile(source, tmp_path / "host", compiler, strict)
    process = subprocess.Popen(  # pylint: disable=consider-using-with
        ["stdbuf", "-oL", program, db.dsn],
        cwd=tmp_path,
        env=prefix.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    first = process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert first.rstrip().endswith("20 segments deleted"), first
    assert process.returncode == 0
    assert db.one("SELECT count(*) FROM queen.log_segments") == 0


def test_readme_folder_of_ones_own_is_found_by_its_variables(prefix, tmp_path):
    """As the README sets them, for a prefix that no tool looks into by itself."""
    exports = re.findall(r'^    export (\w+)="(.*)"$', extract.read(extract.README), re.MULTILINE)
    env = toolchain.environment()
    for name, value in exports:
        value = value.replace("$HOME/qretention", prefix.path).replace("$PATH", env["PATH"])
        assert os.path.isdir(value.split(":")[0]), name
        env[name] = value
    source = tmp_path / "host.c"
    source.write_text(extract.readme_block("c"), "utf-8")
    flags = toolchain.run(["pkg-config", "--cflags", "--libs", "libqretention"], env=env).split()
    toolchain.run(["cc", "-o", tmp_path / "host", source, *flags])
    done = subprocess.run([tmp_path / "host", "=bad"], env=env, timeout=30, check=False)
    assert done.returncode == 1
    assert toolchain.run(["sh", "-c", "command -v qretention"], env=env).startswith(prefix.path)
    if shutil.which("man"):
        page = toolchain.run(["man", "-w", "libqretention"], env=env)
        assert page.startswith(prefix.path)


def test_readme_host_gives_up_where_nothing_is_installed(empty_db, prefix, tmp_path):
    source = tmp_path / "host.c"
    source.write_text(extract.readme_block("c"), "utf-8")
    program = prefix.compile(source, tmp_path / "host")
    done = subprocess.run(
        [program, empty_db.dsn], env=prefix.environment(), timeout=30, check=False
    )
    assert done.returncode == 1


def run_snippet(language, text, folder, prefix, environment):
    """Runs one language's snippet; its stdout."""
    hosts.build(SNIPPETS[language])  # for its tools, or to skip where they are missing
    built = os.path.join(hosts.FOLDER, SNIPPETS[language])
    cache = {name: os.path.join(built, name) for name in ("GOCACHE", "GOPATH", "GOTMPDIR")}
    modules = os.path.join(built, "node_modules")
    env = prefix.environment(
        NODE_PATH=modules, HOME=str(folder), GOFLAGS="-mod=mod", **cache, **environment
    )
    source = folder / (
        "main." + {"python": "py", "js": "js", "lua": "lua", "go": "go", "rust": "rs"}[language]
    )
    source.write_text(text, "utf-8")
    if language == "go":
        return toolchain.run(["go", "run", source], cwd=folder, env=env)
    if language == "rust":
        toolchain.run(["rustc", "-L", prefix.lib, "-o", folder / "main", source])
        return toolchain.run([folder / "main"], env=env)
    program = {"python": "/usr/bin/python3", "js": "node", "lua": "luajit"}[language]
    return toolchain.run([program, source], env=env)


@pytest.mark.parametrize("language", SNIPPETS)
def test_readme_snippet_sweeps(db, prefix, tmp_path, language):
    fill(db, segments=20)
    text = extract.readme_block(language)
    assert run_snippet(language, text, tmp_path, prefix, libpq_environment(db)) == "0\n"
    assert db.one("SELECT count(*) FROM queen.log_segments") == 0


def test_readme_options_are_the_code_s():
    shown = re.search(
        r"^\| option \|.*?(?=\n\n)", extract.read(extract.README), re.DOTALL | re.MULTILINE
    )
    assert shown and shown[0] == options_table.table(), (
        "the table of the README differs; it should be:\n" + options_table.table()
    )


def test_readme_names_what_is_there():
    """Every file, page and option that it names exists."""
    text = extract.read(extract.README)
    for path in re.findall(r"\b((?:examples|tests|packaging)/[\w.-]+(?:/[\w.-]+)*/?)", text):
        assert os.path.exists(os.path.join(toolchain.ROOT, path)), path
    pages = extract.pages()
    for name, number in re.findall(r"`([\w-]+)\((\d)\)`", text):
        assert f"{name}.{number}" in pages, name
    for name in re.findall(r"`man ([\w-]+)`", text):
        assert any(page.rsplit(".", 1)[0] == name for page in pages), name
    options = {option["name"] for option in options_table.qret.options()}
    for name in re.findall(r"`(\w+) = \w+`", text):
        assert name in options, name


def test_readme_names_every_veto():
    """The vetoes of the predicate of record, each in the list of what stays."""
    with open(
        f"{toolchain.ROOT}/sql/log/cleanup/log_partition_dead_v1.sql", encoding="utf-8"
    ) as file:
        predicate = file.read()
    kept = re.search(
        r"## What it never deletes\n(.*?)\n## ", extract.read(extract.README), re.DOTALL
    )[1]
    for column, word in {
        "log_segments": "segment",
        "log_dlq": "dead letter",
        "state": "streams state",
        "batch_end": "lease on it has not expired",
        "lease_acquired_at": "lease was acquired",
        "last_write_at": "written to",
    }.items():
        assert column in predicate and word in kept, column
