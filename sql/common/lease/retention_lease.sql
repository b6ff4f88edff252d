-- The lease: one row that says who sweeps, until when, and when the next cycle is due. All its times are the server's.
--
-- holder      who sweeps; NULL: nobody, the last one gave it back
-- fence       grows with every claim; a step of an earlier claim is refused by it
-- barrier_owed  steps of an earlier claim may be under way: true from a claim on, until a release that is
--             sure of its own steps, after a claim that had waited for the earlier ones
-- expires_at  when the holder is given up unless it renews
-- next_due    the cluster's cadence: no cycle begins before
-- last_start, last_end, runs   of the cycles that were begun
-- enabled     false: an operator has paused all sweeping
--
-- Small and updated often: room for HOT updates, no index but the key. Locks: none beyond its creation.
CREATE TABLE IF NOT EXISTS @part@.retention_lease (
    only_row pg_catalog.bool PRIMARY KEY DEFAULT true CHECK (only_row),
    holder pg_catalog.text,
    fence pg_catalog.int8 NOT NULL DEFAULT 0,
    barrier_owed pg_catalog.bool NOT NULL DEFAULT false,
    expires_at pg_catalog.timestamptz NOT NULL DEFAULT '-infinity',
    next_due pg_catalog.timestamptz NOT NULL DEFAULT '-infinity',
    last_start pg_catalog.timestamptz,
    last_end pg_catalog.timestamptz,
    runs pg_catalog.int8 NOT NULL DEFAULT 0,
    enabled pg_catalog.bool NOT NULL DEFAULT true
) WITH (fillfactor = 10)
