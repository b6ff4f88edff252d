"""Installs the event part over its own tables, or over tables such as Django makes."""

import psycopg2

from pg import install


class EventInstaller(install.Installer):
    """An installer that knows what the event part's list asks for."""

    own_tables = True

    def run(self, kind, path):
        kind, _, condition = kind.partition("-")
        if condition == "if-own-tables" and not self.own_tables:
            return
        text = install.read(path, self.replacements)
        for line in text.splitlines():
            if line.startswith("-- needed: "):
                self.cursor.execute(line.removeprefix("-- needed: "))
                if not self.cursor.fetchone()[0]:
                    return
        getattr(self, kind)(text)


def install_event(dsn, **settings):
    """Returns the replacements that were used, for SQL of the tests' own."""
    replacements = install.tokens(**settings)
    replacements["@part@"] = replacements["@event@"]
    replacements["@part_literal@"] = replacements["@event_literal@"]
    connection = psycopg2.connect(dsn)
    try:
        connection.autocommit = True
        installer = EventInstaller(connection, "event", replacements, False)
        installer.own_tables = "event_table" not in settings
        for kind, path in install.entries("event"):
            installer.run(kind, path)
    finally:
        connection.close()
    return replacements
