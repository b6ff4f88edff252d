"""Runs the rows asked for, prints the table, and after a full run writes it to RESULTS.md."""

import argparse
import datetime
import os
import sys
import time

from bench import contact, drain, idle, prune, push, server, small
from bench.measure import Row, Scale

ROWS = {
    "P1": idle.p1,
    "P2": drain.p2,
    "P3": drain.p3,
    "P4": push.p4,
    "P5": small.p5,
    "P6": contact.p6,
    "P7": idle.p7,
    "P8": idle.p8,
    "P9": prune.p9,
    "P10": prune.p10,
    "P11": drain.p11,
}
RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "RESULTS.md")
SMOKE = Scale(share=0.002, rounds=1, smoke=True)


def arguments():
    parser = argparse.ArgumentParser(prog="tests/bench/run", description=__doc__)
    parser.add_argument("ids", nargs="*", metavar="ID", help=", ".join(ROWS))
    parser.add_argument("--smoke", action="store_true", help="small: whether it runs, not how fast")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full size")
    parser.add_argument("--rounds", type=int, default=3, help="alternating rounds; the median counts")
    chosen = parser.parse_args()
    chosen.ids = [name.upper() for name in chosen.ids] or list(ROWS)
    unknown = [name for name in chosen.ids if name not in ROWS]
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)}")
    return chosen


def run(bench, ids, scale, say=print):
    """The rows in order, printed as they come."""
    rows = []
    for name in ids:
        begun = time.monotonic()
        row = ROWS[name](bench, scale)
        rows.append(row)
        say(f"{row.id:4} {'yes' if row.ok else 'NO ':3}  {row.reached}")
        say(f"          {row.what}")
        say(f"          to reach: {row.to_reach}  ({time.monotonic() - begun:.0f} s)")
        for note in row.notes:
            say(f"          {note}")
    return rows


def results(rows: "list[Row]", facts):
    """RESULTS.md."""
    today = datetime.date.today().isoformat()
    lines = [
        "# Results",
        "",
        f"Written by `sh tests/bench/run` on {today}. Every ratio is of two sides that ran in turn in the",
        "same run, on the same server, and were checked to have deleted the same rows; medians of the rounds.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in facts),
        "",
        "| id | what | to reach | reached | |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        verdict = "yes" if row.ok else "**no**"
        lines.append(f"| {row.id} | {row.what} | {row.to_reach} | {row.reached} | {verdict} |")
    lines += ["", "## Notes", ""]
    for row in rows:
        lines.append(f"**{row.id}**")
        lines.append("")
        lines += [f"- {note}" for note in row.notes]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def main():
    chosen = arguments()
    scale = SMOKE if chosen.smoke else Scale(chosen.scale, chosen.rounds)
    full = not chosen.smoke and scale.share == 1.0 and chosen.ids == list(ROWS)
    with server.Server() as bench:
        facts = server.facts(bench)
        for name, value in facts:
            print(f"{name}: {value}")
        rows = run(bench, chosen.ids, scale, lambda text: print(text, flush=True))
    if full:
        with open(RESULTS, "w", encoding="utf-8") as file:
            file.write(results(rows, facts))
    return 0 if chosen.smoke or all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
