"""A host of its own, whose heap holds nothing that was freed: what a cycle takes is seen to grow.

memory_host.py CONNINFO: prints the growth in KiB, and the report of the cycle, as JSON.
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from pg import qret  # noqa: E402 pylint: disable=wrong-import-position


def status(field):
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


def peak_growth(run):
    """KiB by which the resident set grew at its highest while run() ran."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as refs:
        refs.write("5")  # forget the peak so far
    before = status("VmRSS")
    run()
    return status("VmHWM") - before


def main(conninfo):
    with qret.Context(conninfo, level=qret.LOG_INFO, work_list="scan") as context:
        context.on_metric = lambda sample: context.samples.clear()
        with qret.Context(conninfo) as warm:
            warm.install("log")
        reports = []
        grown = peak_growth(lambda: reports.append(context.cycle()))
        print(json.dumps({"grown": grown, "report": reports[0]}))


main(sys.argv[1])
