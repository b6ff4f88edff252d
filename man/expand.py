#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Expands manual pages: @version@, and a line of its own for each table that the code defines.

    expand.py VERSION LIB OUTDIR PAGE...

The tables are the macro rows of LIB/option_table.h, metric_table.h and log_table.h. A page asks for
one with the line .\\" @options@, @metrics@ or @messages@. Errors that many calls have in common are
asked for with .\\" @server_errors CALL...@ and .\\" @misuse_errors@.
"""
import pathlib
import re
import sys
import textwrap

TOKEN = re.compile(r'/\*.*?\*/|"(?:[^"\\]|\\.)*"|-?\w+|[(),]|\s+', re.DOTALL)


def tokens(text):
    at = 0
    while at < len(text):
        found = TOKEN.match(text, at)
        if not found:
            raise ValueError(f"not a table of macro rows: {text[at:at + 40]!r}")
        at = found.end()
        if not found[0].isspace() and not found[0].startswith("/*"):
            yield found[0]


def unquote(parts):
    """One argument of a row: adjacent strings joined, or the word as it stands."""
    if parts and parts[0].startswith('"'):
        return re.sub(r"\\(.)", r"\1", "".join(part[1:-1] for part in parts))
    return "".join(parts)


def rows(path):
    """(macro, [argument, ...]) of each row of a table of macro rows."""
    stream = tokens(path.read_text(encoding="utf-8"))
    for macro in stream:
        if next(stream) != "(":
            raise ValueError(f"{path}: {macro} is followed by no parenthesis")
        arguments, parts = [], []
        for token in stream:
            if token not in (",", ")"):
                parts.append(token)
                continue
            arguments.append(unquote(parts))
            parts = []
            if token == ")":
                break
        yield macro, arguments


def escape(text):
    """Text for the body of a page."""
    text = re.sub(r"-(?=\d)", r"\\-", text.replace("\\", "\\e"))
    return "\\&" + text if text[:1] in (".", "'") else text


def sentence(text):
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else text + "."


def option(macro, row):
    """(name, type, default, range, environment, scale, help) of one row of the option table."""
    environment, scale = "", "1"
    if macro in ("NUMBER", "FLOOR"):
        _, name, environment, scale, default, least, most, text = row
        kind, span = "int", f"{least} .. {most}"
    elif macro == "BOOL":
        _, name, environment, default, text = row
        kind, span, default = "bool", "", "false" if default == "0" else "true"
    elif macro == "CHOICE":
        _, name, default, span, text = row
        kind = "enum"
    elif macro == "NAME":
        _, name, default, text = row
        kind, span = "text", "one identifier, 1 to 63 bytes"
    else:
        _, name, text = row
        kind, default = "text", ""
        span = "one identifier, or empty" if macro == "ROLE" else "table or schema.table, or empty"
    return name, kind, default, span, environment, scale, text


def options(lib):
    for macro, row in rows(lib / "option_table.h"):
        name, kind, default, span, environment, scale, text = option(macro, row)
        facts = [kind]
        if span:
            facts.append(escape(span.replace("|", " | ")))
        facts.append("default " + escape(default) if default else "empty by default")
        yield f".It Cm {name}"
        yield escape(sentence(text))
        yield ".br"
        yield ", ".join(facts) + "."
        if macro == "FLOOR":
            yield "A smaller value is raised to the least one, with a warning."
        if environment:
            yield "Environment:"
            yield f".Ev {environment}" + (" ," if scale == "1000" else " .")
            if scale == "1000":
                yield "in seconds."


def metrics(lib):
    kinds = {
        "COUNTER": "counter",
        "EVENTS": "counter",
        "GAUGE": "gauge",
        "MET": "gauge",
        "HISTOGRAM": "histogram",
    }
    seen = {}
    for macro, row in rows(lib / "metric_table.h"):
        entry = seen.setdefault(row[1], (kinds[macro], row[2], [], row[-1]))
        if row[3]:
            entry[2].append(row[3])
    for name, (kind, unit, phases, text) in seen.items():
        yield f".It Li {name}"
        yield escape(sentence(text))
        yield ".br"
        yield f"{kind}, {escape(unit)}" + (
            "." if not phases else "; label phase: " + ", ".join(phases) + "."
        )


def messages(lib):
    for _, row in rows(lib / "log_table.h"):
        _, name, level, seconds, meaning, action = row
        limit = f", at most once every {seconds} s" if seconds != "0" else ""
        yield f".It Li {name}"
        yield f"{level.lower()}{limit}."
        yield escape(sentence(meaning))
        yield ".br"
        yield "What to do: " + escape(action.rstrip(".")) + "."


SERVER_ERRORS = {
    "QRET_ERR_CONNECTION": "Cannot connect, or the connection was lost.",
    "QRET_ERR_NOMEM": "Out of memory.",
    "QRET_ERR_OPTION": "Option gate is session behind a transaction pooler.",
    "QRET_ERR_PRIVILEGE": "The role lacks a grant; the message names it.",
    "QRET_ERR_SCHEMA": "Something that must be installed is missing, or of another version.",
    "QRET_ERR_SQL": "The server refused a statement for another reason.",
    "QRET_ERR_TIMEOUT": "A time limit passed, of connecting or of a statement.",
}
MISUSE_ERRORS = {
    "QRET_ERR_ARGUMENT": "The context is NULL.",
    "QRET_ERR_FORKED": "Called in a child process.",
    "QRET_ERR_REENTRANT": "Called from inside a callback of the same context.",
}


def error_list(errors):
    yield ".Bl -tag -width Er"
    for name, text in errors.items():
        yield f".It Dv {name}"
        yield text
    yield ".El"


def server_errors(calls):
    """After a list of a page's own errors: what comes of talking to the server."""
    yield ".Pp"
    for call in calls:
        yield f".Fn {call}" if call == calls[-1] else f".Fn {call}\nand"
    yield "talks to the server:" if len(calls) == 1 else "talk to the server:"
    yield from error_list(SERVER_ERRORS)


def misuse_errors(_calls):
    yield ".Pp"
    yield "As from every call on a context:"
    yield from error_list(MISUSE_ERRORS)


GROUPS = {"server_errors": server_errors, "misuse_errors": misuse_errors}
WHOLE = {"break_long_words": False, "break_on_hyphens": False}
TABLES = {"options": options, "metrics": metrics, "messages": messages}


def narrow(line):
    """A line of code, indented so that it fits a terminal of 80 columns."""
    code = line.lstrip("\t")
    return 4 * (len(line) - len(code)) * " " + code


def expand(text, version, lib):
    for line in map(narrow, text.replace("@version@", version).splitlines()):
        table = re.fullmatch(r'\.\\" @(\w+)@', line)
        group = re.fullmatch(r'\.\\" @(\w+_errors)((?: \w+)*)@', line)
        if table and table[1] in TABLES:
            for row in TABLES[table[1]](lib):
                yield from [row] if row.startswith(".") else textwrap.wrap(row, 79, **WHOLE)
        elif group:
            yield from GROUPS[group[1]](group[2].split())
        else:
            yield line


def main():
    version, lib, outdir = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    for page in map(pathlib.Path, sys.argv[4:]):
        text = "\n".join(expand(page.read_text(encoding="utf-8"), version, lib)) + "\n"
        (outdir / page.name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
