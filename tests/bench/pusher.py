"""A broker that pushes to one partition at a fixed rate, in a process of its own, and times it.

    python3 -m bench.pusher DSN PARTITION RATE SECONDS BYTES

Prints a line when it begins, then one JSON object: pushes, seconds, and the milliseconds of each push.
"""

import json
import sys
import time

import psycopg2

# One call, as brokers have it: the lock is held for its own work and not for round trips.
PUSH = """
CREATE OR REPLACE FUNCTION public.push(p_pid uuid, p_blob bytea) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_last bigint;
    v_stamp timestamptz;
BEGIN
    SELECT last_offset INTO STRICT v_last FROM queen.log_partitions WHERE id = p_pid FOR UPDATE;
    v_stamp := clock_timestamp();
    UPDATE queen.log_partitions
    SET last_offset = v_last + 1,
        last_write_at = CASE WHEN last_write_at < v_stamp - interval '1 second'
                             THEN v_stamp ELSE last_write_at END
    WHERE id = p_pid;
    INSERT INTO queen.log_segments VALUES (p_pid, v_last + 1, v_last + 1, v_stamp, p_blob);
    INSERT INTO queen.log_txns
    VALUES (p_pid, v_last + 1, v_last + 1, v_stamp, decode(md5(v_last::text), 'hex'));
END $$
"""


def push(dsn, partition, rate, duration, size):
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    cursor = connection.cursor()
    blob = psycopg2.Binary(b"x" * size)
    cursor.execute("PREPARE push(uuid, bytea) AS SELECT public.push($1, $2)")
    for _ in range(10):
        cursor.execute("EXECUTE push(%s, %s)", (partition, blob))
    took = []
    print("begun", flush=True)
    begun = time.perf_counter()
    while True:
        due = begun + len(took) / rate
        now = time.perf_counter()
        if now >= begun + duration:
            return {"pushes": len(took), "seconds": now - begun, "ms": took}
        if due > now:
            time.sleep(due - now)
        sent = time.perf_counter()
        cursor.execute("EXECUTE push(%s, %s)", (partition, blob))
        took.append((time.perf_counter() - sent) * 1000)


def main():
    dsn, partition, rate, duration, size = sys.argv[1:]
    json.dump(push(dsn, partition, float(rate), float(duration), int(size)), sys.stdout)


if __name__ == "__main__":
    main()
