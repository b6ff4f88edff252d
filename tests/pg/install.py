"""Installs sql/<part> straight from its files, in the order of the part's install.list.

For tests of the SQL itself, which try files and parts of files before any library carries them.
Fixtures and the tests of the library install through the library."""

import importlib.util
import os
import pathlib
import re
import time

import psycopg2
import psycopg2.errors

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SQL = os.path.join(ROOT, "sql")
VERSION = 1
TRIES = 5

SIGNATURE = re.compile(r"^--\s*signature:\s*(.+?)\s*$", re.MULTILINE)
INDEX_NAME = re.compile(
    r'CREATE\s+(?:UNIQUE\s+)?INDEX\s+CONCURRENTLY\s+IF\s+NOT\s+EXISTS\s+("(?:[^"]|"")+"|\w+)',
    re.IGNORECASE,
)


def quote_name(name):
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text):
    if text is None:
        return "NULL"
    escaped = text.replace("'", "''")
    if "\\" in escaped:
        return "E'" + escaped.replace("\\", "\\\\") + "'"
    return "'" + escaped + "'"


def tokens(
    log_schema="queen",
    streams_schema="queen_streams",
    event_schema="outbox",
    grant_role=None,
    event_table=None,
    delivery_table=None,
    success_table=None,
):
    """The replacements in SQL text; table names are given already quoted and qualified."""
    event = quote_name(event_schema)
    tables = {
        "event_table": event_table or event + ".event",
        "delivery_table": delivery_table or event + ".delivery",
        "success_table": success_table or event + ".receiver_last_success",
    }
    suffix = "_host" if event_table else ""
    found = {
        "@version@": str(VERSION),
        "@role_literal@": quote_literal(grant_role),
        "@suffix@": suffix,
        "@suffix_literal@": quote_literal(suffix),
    }
    schemas = {"log": log_schema, "streams": streams_schema, "event": event_schema}
    for key, name in schemas.items():
        found[f"@{key}@"] = quote_name(name)
        found[f"@{key}_literal@"] = quote_literal(name)
    for key, name in tables.items():
        found[f"@{key}@"] = name
        found[f"@{key}_literal@"] = quote_literal(name)
    return found


def substitute(text, replacements):
    """One pass, so that a replacement's own text is never replaced again."""
    pattern = re.compile("|".join(re.escape(key) for key in sorted(replacements, key=len)[::-1]))
    return pattern.sub(lambda match: replacements[match[0]], text)


def entries(part, listing="install.list"):
    """(kind, path) of each line of the part's install.list and of the lists that it includes."""
    folder = os.path.join(SQL, part)
    with open(os.path.join(folder, listing), encoding="utf-8") as lines:
        for line in lines:
            words = line.split("#")[0].split()
            if not words:
                continue
            if words[0] == "include":
                yield from entries(part, words[1])
            else:
                yield words[0], os.path.join(folder, words[1])


def client_text(name):
    """A statement of sql/client as the build embeds it, its tokens still in it."""
    spec = importlib.util.spec_from_file_location("embed", os.path.join(SQL, "embed.py"))
    embed = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(embed)
    return embed.statement_text(pathlib.Path(SQL, "client", name))


def read(path, replacements):
    with open(path, encoding="utf-8") as source:
        return substitute(source.read(), replacements)


class Installer:
    """Runs the entries of one part on one autocommitting connection."""

    def __init__(self, connection, part, replacements, streams):
        self.cursor = connection.cursor()
        owner = "event" if part == "event" else "log"
        own = {f"@part{end}": replacements[f"@{owner}{end}"] for end in ("@", "_literal@")}
        self.replacements = dict(replacements, **own)
        self.streams = streams

    def run(self, kind, path):
        kind, _, condition = kind.partition("-")
        if condition == "if-streams" and not self.streams:
            return
        if condition == "unless-streams" and self.streams:
            return
        getattr(self, kind)(read(path, self.replacements))

    def statement(self, text):
        for attempt in range(TRIES):
            try:
                self.cursor.execute(text)
                return
            except psycopg2.errors.LockNotAvailable:
                if attempt + 1 == TRIES:
                    raise
                time.sleep(0.1)

    def object(self, text):
        owner = self.replacements["@part@"]
        self.cursor.execute(
            f"SELECT {owner}.retention_install_v1(%s, %s)", (SIGNATURE.search(text)[1], text)
        )

    def index(self, text):
        self.cursor.execute(text)

    def repeat(self, text):
        while True:
            self.cursor.execute(text)
            if not self.cursor.fetchone()[0]:
                return


def install(dsn, part, **settings):
    """Installs one part ("broker", "log" or "event") through the connection string dsn."""
    connection = psycopg2.connect(dsn)
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("SET client_min_messages = warning")
            streams = quote_name(settings.get("streams_schema", "queen_streams")) + ".state"
            cursor.execute("SELECT to_regclass(%s) IS NOT NULL", (streams,))
            installer = Installer(connection, part, tokens(**settings), cursor.fetchone()[0])
        for kind, path in entries(part):
            installer.run(kind, path)
    finally:
        connection.close()
