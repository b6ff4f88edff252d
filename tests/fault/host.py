"""A host in a process of its own: cycles at its interval, a line of JSON for each begin and end.

    host.py CONNINFO OPTIONS SECONDS

OPTIONS is a JSON object. Ends after SECONDS, or between two batches once SIGTERM came (qret_stop).
"""

import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from pg import qret  # noqa: E402 pylint: disable=wrong-import-position


def say(**line):
    print(json.dumps(line), flush=True)


def main(conninfo, options, seconds):
    until = time.monotonic() + float(seconds)
    with qret.Context(conninfo, level=qret.LOG_WARN, **json.loads(options)) as context:
        context.stopped = False

        def leave(*_):
            context.stopped = True
            context.stop()

        signal.signal(signal.SIGTERM, leave)
        context.on_log = lambda line: say(log=line.event, text=line.text)
        say(ready=os.getpid())
        while time.monotonic() < until:
            say(begin=time.monotonic())
            code, report = context.try_cycle()
            # A stopped context says so at once, or its last cycle's outcome first.
            if code == qret.STOPPED:
                break
            say(
                end=time.monotonic(),
                code=qret.types.name_of(code),
                report=report,
                message=context.message,
                sqlstate=context.sqlstate,
            )
            while context.next_cycle_us() > context.lib.qret_now_us():
                if time.monotonic() > until:
                    break
                context.wait()
                if context.stopped:
                    break
            if context.stopped:
                break
    say(bye=True)


if __name__ == "__main__":
    main(*sys.argv[1:4])
