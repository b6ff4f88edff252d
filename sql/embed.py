#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns the SQL tree into one C source and one header.

    embed.py SQL_FOLDER OUTPUT.c OUTPUT.h

client/*.sql become statements (enum STATEMENT_<NAME>), with client/shared/NAME.sql for a line
@shared:NAME@; <part>/install.list become the install lists of the parts, `include` lines flattened. The comments of statements are left out: they would
travel with every call. Those of functions stay in what is installed.
"""
import pathlib
import re
import sys

KINDS = {
    "statement",
    "statement-if-own-tables",
    "object",
    "object-if-streams",
    "object-unless-streams",
    "object-if-own-tables",
    "index",
    "index-if-streams",
    "index-unless-streams",
    "index-if-own-tables",
    "repeat",
}
PARTS = ("broker", "log", "event")


def c_string(text):
    lines = []
    for line in text.splitlines(keepends=True):
        escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        escaped = escaped.replace("??", "?\\?")
        lines.append('\t"%s"' % escaped)
    return "\n".join(lines) or '\t""'


def without_comments(text):
    kept = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    return "\n".join(kept).strip().rstrip(";") + "\n"


def statement_text(path):
    """A statement of client/ as it is sent, its tokens still in it."""

    def shared(found):
        return without_comments((path.parent / "shared" / f"{found[1]}.sql").read_text())

    return re.sub(r"^@shared:(\w+)@\n", shared, without_comments(path.read_text()), flags=re.M)


def read_list(path, part_folder):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        kind, name = line.split()
        if kind == "include":
            include = part_folder / name
            yield from read_list(include, part_folder)
        elif kind in KINDS:
            yield kind, part_folder / name
        else:
            sys.exit(f"{path}:{number}: unknown kind {kind}")


def signature(text, path, kind):
    found = re.search(r"^-- signature:\s*(.+?)\s*$", text, re.M)
    if kind.startswith("object"):
        if not found:
            sys.exit(f"{path}: an object needs a line '-- signature: name(type, ...)'")
        return found.group(1)
    if kind.startswith("index"):
        found = re.search(r'CREATE\s+(?:UNIQUE\s+)?INDEX\s+CONCURRENTLY\s+IF\s+NOT\s+EXISTS\s+"?(\w+)"?', text)
        if not found:
            sys.exit(f"{path}: not a CREATE INDEX CONCURRENTLY IF NOT EXISTS name")
        return found.group(1)
    return ""


def write(path, lines):
    text = "\n".join(lines)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    folder, source, header = map(pathlib.Path, sys.argv[1:])
    statements = sorted((folder / "client").glob("*.sql"))
    out = ["/* Made from the SQL tree at build time. */", f'#include "{header.name}"', ""]
    out.append("const char *const sql_statements[STATEMENT_COUNT] = {")
    for path in statements:
        out.append(f"[STATEMENT_{path.stem.upper()}] =\n{c_string(statement_text(path))},")
    out.append("};")
    out.append("")
    for part in PARTS:
        entries = []
        listing = folder / part / "install.list"
        if listing.exists():
            for kind, path in read_list(listing, listing.parent):
                text = path.read_text().strip().rstrip(";") + "\n"
                name = signature(text, path, kind)
                needed = re.search(r"^-- needed:\s*(.+?)\s*$", text, re.M)
                needed = c_string(needed.group(1)) if needed else "0"
                where = path.resolve().relative_to(folder.resolve())
                entries.append('{ "%s", "%s", "%s", %s,\n%s },' % (kind, where, name, needed, c_string(text)))
        out.append(f"const struct sql_entry sql_install_{part}[] = {{")
        out += entries
        out.append("{ 0, 0, 0, 0, 0 } };")
        out.append("")
    write(source, out)
    head = ["/* Made from the SQL tree at build time. */", "#ifndef QRET_SQL_EMBEDDED_H", "#define QRET_SQL_EMBEDDED_H", ""]
    head.append("enum statement {")
    head += [f"\tSTATEMENT_{path.stem.upper()}," for path in statements]
    head += ["\tSTATEMENT_COUNT", "};", ""]
    head.append("extern const char *const sql_statements[STATEMENT_COUNT];")
    head.append("")
    head.append("struct sql_entry {")
    head.append("\tconst char *kind, *path, *name; /* name: an object's signature, an index's name */")
    head.append("\tconst char *needed;              /* a query that says whether to; or NULL */")
    head.append("\tconst char *text;")
    head.append("};")
    head.append("")
    head += [f"extern const struct sql_entry sql_install_{part}[]; /* ends with a NULL kind */" for part in PARTS]
    head += ["", "#endif", ""]
    write(header, head)


if __name__ == "__main__":
    main()
