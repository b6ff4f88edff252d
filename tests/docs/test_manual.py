"""Pages, header, symbol file, tables and versions say the same; the examples compile and run."""

import glob
import os
import re
import shutil
import subprocess

import pytest

from abi import toolchain
from docs import extract
from hosts.programs import Driver, fill, wait_for
from pg import qret

PAGES = extract.pages()
CALL_PAGES = [name for name in PAGES if name.startswith("qret_")]
SECTIONS = [
    "LIBRARY",
    "SYNOPSIS",
    "DESCRIPTION",
    "RETURN VALUES",
    "THREADS",
    "EXAMPLES",
    "ERRORS",
    "SEE ALSO",
    "HISTORY",
]
PRELUDE = """#include <qretention.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
"""


def meson_pages():
    """{page: further names} of man/meson.build."""
    text = extract.read(os.path.join(extract.MAN, "meson.build"))
    table = re.search(r"pages = \{(.*?)\n\}", text, re.DOTALL)[1]
    rows = re.findall(r"'([\w.-]+)': \[(.*?)\]", table, re.DOTALL)
    return {page: re.findall(r"'(\w+)'", names) for page, names in rows}


@pytest.fixture(scope="module")
def installed(prefix):
    """{name: text} of the installed pages, and where they are."""
    found = {}
    for folder, _, files in os.walk(prefix.man):
        for name in files:
            found[name] = os.path.join(folder, name)
    return found


def test_manual_every_call_has_its_page():
    documented = [name for page in CALL_PAGES for name in extract.names(PAGES[page])]
    assert sorted(documented) == sorted(set(documented)), "a call has two pages"
    assert set(documented) == set(toolchain.header_calls())
    assert set(documented) == {name for _, names in toolchain.symbol_nodes() for name in names}


@pytest.mark.parametrize("page", CALL_PAGES)
def test_manual_prototypes_are_the_header_s(page):
    calls = toolchain.header_calls()
    shown = extract.prototypes(PAGES[page])
    assert list(shown) == extract.names(PAGES[page])
    for name, prototype in shown.items():
        assert prototype == calls[name]


@pytest.mark.parametrize("page", CALL_PAGES)
def test_manual_structs_are_the_header_s(page):
    header = toolchain.header_text()
    for block in extract.literals(extract.section(PAGES[page], "SYNOPSIS")):
        for struct, body in re.findall(r"struct (\w+) \{(.*?)\};", block, re.DOTALL):
            declared = re.search(rf"struct {struct} \{{(.*?)\}};", header, re.DOTALL)[1]
            assert fields(body) == fields(declared), struct
        for typedef in re.findall(r"typedef .*?;", block, re.DOTALL):
            assert re.sub(r"\s+", " ", typedef) in header


def fields(body):
    found = []
    for declaration in re.sub(r"/\*.*?\*/", " ", body, flags=re.DOTALL).split(";"):
        words = declaration.replace("*", " ").replace(",", " ").split()
        found += [
            word
            for word in words
            if word not in ("const", "char", "uint32_t", "int32_t", "int64_t", "uint8_t", "double")
        ]
    return found


@pytest.mark.parametrize("page", CALL_PAGES)
def test_manual_page_has_all_sections(page):
    titles = re.findall(r"^\.Sh (.+)$", PAGES[page], re.MULTILINE)
    assert [title for title in SECTIONS if title not in titles] == []


def test_manual_meson_lists_every_page_and_name():
    listed = meson_pages()
    assert set(listed) == set(PAGES)
    for page, names in listed.items():
        first, *further = extract.names(PAGES[page])
        assert page.rsplit(".", 1)[0] == first and names == further


def test_manual_is_installed_under_every_name(installed):
    for name in toolchain.header_calls():
        assert os.path.exists(installed[name + ".3"]), name
    assert set(PAGES) <= set(installed)


def test_manual_versions_agree(installed):
    version = toolchain.version()
    for page in PAGES:
        text = extract.read(installed[page])
        assert "@version@" not in text and version in text, page
    news = extract.read(os.path.join(toolchain.ROOT, "NEWS.md"))
    assert re.search(r"^## (\S+)", news, re.MULTILINE)[1] == version
    assert qret.version() == version


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
def test_manual_passes_mandoc_lint(installed):
    """Clean but for pages of others that are not on this machine."""
    for page in PAGES:
        done = subprocess.run(
            ["mandoc", "-Tlint", "-Wall", installed[page]],
            capture_output=True,
            text=True,
            check=False,
        )
        complaints = [
            line
            for line in (done.stdout + done.stderr).splitlines()
            if "referenced manual not found" not in line and "outdated mandoc.db" not in line
        ]
        assert complaints == [], page


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
def test_manual_fits_a_terminal(installed):
    for page in PAGES:
        text = toolchain.run(["mandoc", "-Tutf8", "-Owidth=78", installed[page]])
        for line in re.sub(r".\x08", "", text).splitlines():
            assert len(line) <= 80, (page, line)


def test_manual_references_lead_somewhere(installed):
    others = {"poll 2", "free 3", "longjmp 3", "setenv 3"}
    for page, text in PAGES.items():
        for name, number in re.findall(r"^\.Xr (\S+) (\d)", text, re.MULTILINE):
            assert f"{name}.{number}" in installed or f"{name} {number}" in others, (page, name)


@pytest.mark.parametrize("page", CALL_PAGES)
def test_manual_examples_compile(tmp_path, page):
    blocks = extract.literals(extract.section(PAGES[page], "EXAMPLES"))
    assert blocks, "no example"
    source = tmp_path / "example.c"
    source.write_text(PRELUDE + "\n".join(blocks), "utf-8")
    for compiler in toolchain.compilers():
        toolchain.run(
            [
                compiler,
                "-std=gnu99",
                "-Wall",
                "-Wextra",
                "-Wshadow",
                "-Werror",
                f"-I{toolchain.ROOT}/include",
                "-c",
                "-o",
                os.devnull,
                source,
            ]
        )


def test_manual_program_runs(db, prefix, tmp_path):
    """The complete program of libqretention(3): it sweeps, and a signal ends it well."""
    program_text, commands = extract.literals(extract.section(PAGES["libqretention.3"], "EXAMPLES"))
    assert "pkg-config --cflags --libs libqretention" in commands
    fill(db, segments=20)
    source = tmp_path / "sweeper.c"
    source.write_text(program_text, "utf-8")
    words = ["-std=gnu99", "-Wall", "-Wextra", "-Wshadow", "-Werror"]
    program = prefix.compile(source, tmp_path / "sweeper", "gcc", words)
    process = subprocess.Popen(
        [program, db.dsn],
        env=prefix.environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_for(lambda: db.one("SELECT count(*) FROM queen.log_segments") == 0)
    process.terminate()
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert "event=swept" in err and "segments_deleted=20" in err


def test_manual_lost_connections_end_as_the_cut_points_say():
    """Of each phase that a page says leaves an outcome alone, what a lost connection does there."""
    with open(os.path.join(toolchain.ROOT, "tests", "fault", "cut_points.tsv"), encoding="utf-8") as table:
        rows = dict(line.split()[:2] for line in table if line.strip() and line[0] != "#")
    lost = {kind for kind, returned in rows.items() if returned == "ERR_CONNECTION"}
    assert {"step", "partition_cleanup", "metrics_purge", "event_prune"} <= lost
    assert rows["release"] == "DONE"
    said = extract.section(PAGES["qret_run_cycle.3"], "RETURN VALUES")
    said = re.search(r"\.Dv QRET_PARTIAL \.\n(A lost connection.*?)\.Fn", said, re.DOTALL)[1]
    assert "whatever phase" in said and "QRET_ERR_CONNECTION" in said and "release_failed" in said


def body(installed, page):
    """A page as a reader sees it, without overstrikes and line breaks."""
    if not shutil.which("mandoc"):
        pytest.skip("mandoc is not installed")
    text = toolchain.run(["mandoc", "-Tascii", installed[page]])
    return re.sub(r"\s+", " ", re.sub(r".\x08", "", text))


def sentence(text):
    text = text[0].upper() + text[1:]
    return re.sub(r"\s+", " ", text if text.endswith(".") else text + ".")


def test_manual_options_are_the_library_s(installed):
    text = body(installed, "qretention-options.7")
    at = 0
    for option in qret.options():
        default = (
            f"default {option['default_value']}" if option["default_value"] else "empty by default"
        )
        for part in (
            f" {option['name']} {sentence(option['help'])}",
            f"{option['type']}, ",
            default,
        ):
            at = text.find(part, at)
            assert at >= 0, (option["name"], part)
        if option["type"] != "bool":
            assert option["range"].replace("|", " | ") in text[at - 200 : at + 10], option["name"]
        if option["env"]:
            assert option["env"] in text[at : at + 200], option["name"]
    assert text.count(" default ") + text.count("empty by default") >= len(qret.options())


def test_manual_metrics_are_the_library_s(installed):
    text = body(installed, "qretention-metrics.7")
    kinds = {
        qret.METRIC_COUNTER: "counter",
        qret.METRIC_GAUGE: "gauge",
        qret.METRIC_HISTOGRAM: "histogram",
    }
    series = qret.metrics()
    for metric in series:
        kind = kinds[metric["kind"]]
        entry = f" {metric['name']} {sentence(metric['help'])} {kind}, {metric['unit']}"
        assert entry in text, entry
        if metric["phase"]:
            assert metric["phase"] in text[text.find(entry) + len(entry) :][:200]
    listed = re.search(r"METRICS (.*?) WHAT TO WATCH", text)[1]
    named = re.findall(r"\b(qretention_\w+) [A-Z]", listed)
    assert sorted(named) == sorted({metric["name"] for metric in series})


def test_manual_messages_are_the_code_s(installed):
    text = body(installed, "qretention-messages.7")
    table = extract.read(os.path.join(toolchain.ROOT, "lib", "log_table.h"))
    rows = re.findall(r'^EVENT\(\w+, "(\w+)", (\w+), (\d+),', table, re.MULTILINE)
    assert len(rows) > 20
    for name, level, seconds in rows:
        limit = f", at most once every {seconds} s" if seconds != "0" else ""
        assert f" {name} {level.lower()}{limit}. " in text, name
    assert text.count("What to do:") == len(rows)


def keys_written():
    """Every key that the library, or the program beside it, puts into a record's line."""
    found = {"event", "suppressed"}
    call = re.compile(r"\bline_(?:text|number|uuid)\(([^;{]*?)\);", re.DOTALL)
    for path in glob.glob(os.path.join(toolchain.ROOT, "lib", "*.c")):
        for arguments in call.findall(extract.read(path)):
            key = re.match(r'&?\w+,\s*"(\w+)"', arguments)
            assert key or arguments.startswith(("line, key", "struct line")), arguments
            found |= {key[1]} if key else set()
    return found


def test_manual_messages_explain_every_key():
    section = extract.section(PAGES["qretention-messages.7"], "KEYS")
    explained = re.findall(r"\w+", " ".join(re.findall(r"^\.It Li (.*)$", section, re.MULTILINE)))
    written = keys_written()
    assert len(written) > 25
    assert sorted(explained) == sorted(written)


def test_manual_constants_are_the_header_s():
    header = toolchain.header_constants()
    page = PAGES["libqretention.3"]
    shown = dict(re.findall(r"^\.It Dv (QRET_\w+) No \(?\\?(-?\d+)\)?", page, re.MULTILINE))
    results = {
        name: value
        for name, value in header.items()
        if name in shown or name.startswith("QRET_ERR_")
    }
    assert shown == results and len(shown) == 21
    for text in PAGES.values():
        for name in re.findall(
            r"\bQRET_[A-Z_]+\b", re.sub(r"^\.Dt .*$", "", text, flags=re.MULTILINE)
        ):
            assert name.endswith("_") or f"#define {name} " in toolchain.header_text(), name


def test_manual_exit_codes_are_the_program_s(db):
    driver = Driver(db.dsn)
    status = extract.section(PAGES["qretention.1"], "EXIT STATUS")
    shown = dict(re.findall(r"^\.It (\d+)\n(.+)$", status, re.MULTILINE))
    told = dict(re.findall(r"^  ([ \d]\d)  (\S.*)$", driver("--help", dsn=None).out, re.MULTILINE))
    told = {code.strip(): text for code, text in told.items()}
    errors = [int(v) for k, v in toolchain.header_constants().items() if k.startswith("QRET_ERR_")]
    assert set(told) | {str(10 - error) for error in errors} <= set(shown)
    assert set(shown) - set(told) == {"9"}, "an outcome that the program does not know"


def test_manual_names_every_command_and_option_of_the_program(db):
    driver = Driver(db.dsn)
    page = PAGES["qretention.1"].replace("\\-", "-")
    out = driver("--help", dsn=None).out
    commands = re.findall(
        r"^  ([a-z-]+)  +\S", re.search(r"commands.*?\n\n", out, re.DOTALL)[0], re.MULTILINE
    )
    assert len(commands) >= 8
    for command in commands:
        assert f".It Ic {command}" in page, command
        for option in re.findall(
            r"--([a-z-]+)", driver(command, "--help", dsn=None).out.split("options:")[1]
        ):
            assert f"-{option}" in page, (command, option)


def test_manual_json_keys_are_the_program_s(db, empty_db):
    """What qretention(1) says of the objects: their first keys, a cycle's counts, an error's."""
    page = extract.section(PAGES["qretention.1"], "DESCRIPTION")
    said = re.search(r"\.It Fl j .*?(?=\.It Fl)", page, re.DOTALL)[0]
    cycle = Driver(db.dsn)("cycle", "--json").object
    report = re.search(
        r"struct qret_cycle_report \{(.*?)\};", toolchain.header_text(), re.DOTALL
    )[1]
    wanted = {{"clock_us": "clock", "last_success_us": "last_success"}.get(f, f) for f in fields(report)}
    assert set(cycle) == {"command", "outcome", "code", *wanted} - {"size"}
    failed = Driver(empty_db.dsn)("cycle", "--json").object
    for key in ("command", "outcome", "code", "clock", "last_success", "error", *failed["error"]):
        assert re.search(rf"^\.Li .*\b{key}\b", said, re.MULTILINE), key


def signatures(part):
    """The signatures of the functions that a part installs."""
    found = set()
    for folder, _, files in os.walk(os.path.join(toolchain.ROOT, "sql", part)):
        for name in files:
            text = extract.read(os.path.join(folder, name)) if name.endswith(".sql") else ""
            found |= set(re.findall(r"^-- signature:\s*(\w+)\((.*?)\)\s*$", text, re.MULTILINE))
    return found


@pytest.mark.parametrize("part", ["log", "common"])
def test_manual_lists_every_function(part):
    """By its signature; what only the library calls may stand there by name."""
    page = PAGES["qretention-sql.7"]
    shown = re.findall(r"^\.(?:It )?Fn (\w+)(.*)$", page, re.MULTILINE)
    shown = {name: ", ".join(re.findall(r'"([^"]*)"', rest)) for name, rest in shown}
    for name, arguments in signatures(part):
        assert name in page, name
        assert shown.get(name, arguments) in (arguments, ""), name


def test_manual_lists_every_function_of_the_outbox():
    page = PAGES["qretention-sql.7"]
    for name, arguments in signatures("event"):
        inner = name.startswith(("event_prune_", "prune_events_"))
        words = " ".join(f'"{word}"' for word in arguments.split(", ") if word)
        assert inner or f"{name} {words}".strip() in page, (name, arguments)


def test_manual_sqlstates_are_the_code_s():
    page = extract.section(PAGES["qretention-sql.7"], "SQLSTATES")
    code = extract.read(os.path.join(toolchain.ROOT, "lib", "sqlstate.h"))
    assert set(re.findall(r"QR\d{3}", page)) == set(re.findall(r"QR\d{3}", code))


def test_manual_grants_are_the_install_s():
    """Each table that an install grants something on is in the page."""
    page = extract.section(PAGES["qretention-sql.7"], "GRANTS")
    for script in ("log/grants/grants.sql", "log/v2/grants.sql"):
        text = extract.read(os.path.join(toolchain.ROOT, "sql", script))
        for table in re.findall(r"\(v_(?:log|streams), '(\w+)',", text):
            known = (
                table in page or table == "state" or "metric" in table or table.startswith("queue_")
            )
            assert known, table
