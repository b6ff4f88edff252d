-- Events with a window of their own, by when it passes, so that finding none that has costs one
-- look however many there are. A window or a date that cannot be reckoned with sorts as 'infinity'
-- and is never due; the expression accepts every row, so no INSERT of the host's fails for it. In
-- UTC and without time zone because only so is the addition immutable.
-- needed: SELECT @event@.event_index_needed_v1('expiry')
-- Locks: SHARE UPDATE EXCLUSIVE; waits for older transactions; no transaction of its own around it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS retention_event_expiry_idx@suffix@
    ON @event_table@ ((
        CASE WHEN recorded_at OPERATOR(pg_catalog.>=)
                    '0001-01-01 00:00:00+00'::pg_catalog.timestamptz
                AND recorded_at OPERATOR(pg_catalog.<)
                    '9999-01-01 00:00:00+00'::pg_catalog.timestamptz
                AND retention_seconds OPERATOR(pg_catalog.>) 0
            THEN (recorded_at AT TIME ZONE 'UTC')
                OPERATOR(pg_catalog.+) pg_catalog.make_interval(secs => retention_seconds)
            ELSE 'infinity'::pg_catalog.timestamp
        END), id)
    WHERE retention_seconds IS NOT NULL
