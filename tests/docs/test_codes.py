"""What each call may return: the header's comment and the call's page name the same codes."""

import re

import pytest

from abi import toolchain
from docs import extract

PAGES = {name: text for name, text in extract.pages().items() if name.startswith("qret_")}
RESULTS = {
    name
    for name, value in toolchain.header_constants().items()
    if name.startswith("QRET_ERR_")
    or name in ("QRET_DONE", "QRET_MORE", "QRET_WAIT", "QRET_BUSY", "QRET_STOPPED")
    or name in ("QRET_PARTIAL", "QRET_PAUSED", "QRET_STANDBY", "QRET_BUDGET")
}
MISUSE = {"QRET_ERR_ARGUMENT", "QRET_ERR_REENTRANT", "QRET_ERR_FORKED"}
ANYWHERE = {"qret_set_busy"}  # may be called from a callback and says itself what it returns


def calls_with_codes():
    """{call: prototype} of those that return a code."""
    calls = toolchain.header_calls()
    return {name: text for name, text in calls.items() if re.search(r"\bint qret_", text)}


def on_a_context(name):
    return "(struct qret_ctx *ctx" in calls_with_codes()[name] and name not in ANYWHERE


def codes(text):
    return set(re.findall(r"\bQRET_[A-Z_]+\b", text)) & RESULTS


def header_codes():
    """{call: codes} by the comments of the header, its two groups spelled out."""
    text = toolchain.header_text()
    conventions = re.sub(r"\s*\n \*\s*", " ", text[: text.index("#ifndef")])
    told_once = re.search(r"A call that returns int.*?declared\.", conventions)[0]
    server = codes(re.search(r'"A server error".*?\. ', conventions + " ")[0])
    assert codes(told_once) == MISUSE and len(server) == 7
    found = {}
    for comment, name in re.findall(
        r"/\*((?:(?!\*/).)*)\*/\s*QRET_API int (qret_\w+)\(", text, re.DOTALL
    ):
        said = re.sub(r"\s*\n \*\s*", " ", comment)
        found[name] = codes(said)
        if "a server error" in said:
            found[name] |= server
        if on_a_context(name):
            found[name] |= MISUSE
    return found


def sentences(text, family):
    """(calls, piece of text): a piece that begins with names of calls is about them alone."""
    about, pieces, naming = set(family), [], False
    for line in text.splitlines():
        named = re.match(r"\.Fn (qret_\w+)", line)
        if named:
            about = (about if naming else set()) | {named[1]}
        elif line not in ("and", ","):
            pieces.append((about & set(family), line))
        naming = bool(named) or (naming and line == "and")
    return pieces


def page_codes(page, family):
    """{call: codes} by the sections RETURN VALUES and ERRORS of the page as it is installed."""
    found = {name: set() for name in family}
    for about, line in sentences(extract.section(page, "RETURN VALUES"), family):
        for name in about:
            found[name] |= codes(line)
    group = set(family)
    for line in extract.section(page, "ERRORS").splitlines():
        item = re.match(r"\.It Dv (.*?)(?: Pq (.*))?$", line)
        named = re.match(r"\.Fn (qret_\w+)", line)
        if item:
            own = set(re.findall(r"Fn (qret_\w+)", item[2] or "")) or group
            for name in own:
                found[name] |= codes(item[1])
        elif line == ".Pp":
            group = set()
        elif line == "As from every call on a context:":
            group = {name for name in family if on_a_context(name)}
        elif named and named[1] in found:
            group = group | {named[1]}
    return found


@pytest.fixture(scope="module")
def header():
    return header_codes()


def test_codes_every_call_is_described(header):
    assert set(header) == set(calls_with_codes())
    for name, said in header.items():
        assert "QRET_DONE" in said, name


@pytest.mark.parametrize("page", PAGES)
def test_codes_of_header_and_page_agree(header, prefix, page):
    family = [name for name in extract.names(PAGES[page]) if name in header]
    text = extract.read(f"{prefix.man}/man3/{page}")
    for name, shown in page_codes(text, family).items():
        assert sorted(shown) == sorted(header[name]), name
