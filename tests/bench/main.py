"""Runs the rows asked for, prints the table, and writes it to RESULTS.md after a full run, or where asked to."""

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
    parser.add_argument(
        "ids", nargs="*", metavar="ID[@SHARE]", help=", ".join(ROWS) + "; P8@0.1: a tenth of its size"
    )
    parser.add_argument("--write", action="store_true", help="write RESULTS.md with these rows")
    parser.add_argument("--smoke", action="store_true", help="small: whether it runs, not how fast")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full size")
    parser.add_argument("--rounds", type=int, default=3, help="alternating rounds; the median counts")
    chosen = parser.parse_args()
    chosen.sizes = {}
    for word in chosen.ids or ROWS:
        name, _, share = word.upper().partition("@")
        if name not in ROWS:
            parser.error(f"no such row: {word}")
        try:
            chosen.sizes[name] = float(share or chosen.scale)
        except ValueError:
            parser.error(f"no share of the full size: {word}")
    return chosen


def run(bench, scales, say=print, keep=lambda rows: None):
    """The rows in order, printed and kept as they come; scales: {id: Scale}."""
    rows = []
    for name, scale in scales.items():
        begun = time.monotonic()
        row = ROWS[name](bench, scale)
        rows.append(row)
        keep(rows)
        say(f"{row.id:4} {'yes' if row.ok else 'NO ':3}  {row.reached}")
        say(f"          {row.what}")
        say(f"          to reach: {row.to_reach}  ({time.monotonic() - begun:.0f} s)")
        for note in row.notes:
            say(f"          {note}")
    return rows


def results(rows: "list[Row]", facts):
    """RESULTS.md."""
    today = datetime.date.today().isoformat()
    rows = sorted(rows, key=lambda row: list(ROWS).index(row.id))
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
    scales = {
        name: SMOKE if chosen.smoke else Scale(share, chosen.rounds)
        for name, share in chosen.sizes.items()
    }
    full = set(scales) == set(ROWS) and all(scale.share == 1.0 for scale in scales.values())
    with server.Server() as bench:
        facts = server.facts(bench)
        for name, value in facts:
            print(f"{name}: {value}")

        def keep(rows):
            if full or chosen.write:
                with open(RESULTS, "w", encoding="utf-8") as file:
                    file.write(results(rows, facts))

        rows = run(bench, scales, lambda text: print(text, flush=True), keep)
    return 0 if chosen.smoke or all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
