"""The README's table of options, made from the library itself.

Run it to see the table as it should be: /usr/bin/python3 tests/docs/options_table.py
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from pg import qret  # noqa: E402 pylint: disable=wrong-import-position

HEAD = ["| option | default | range | environment | meaning |", "|---|---|---|---|---|"]


def row(option):
    span = option["range"].replace("|", " \\| ")
    name, default = f"`{option['name']}`", option["default_value"]
    return f"| {name} | {default or '(empty)'} | {span} | {option['env']} | {option['help']} |"


def table():
    return "\n".join(HEAD + [row(option) for option in qret.options()])


if __name__ == "__main__":
    print(table())
