-- What retention knows of each partition, so that it can find the ones with something to delete
-- without visiting the rest. Only retention writes it; losing it loses no data, only time.
--
-- partition_id    no foreign key: one would put triggers of its own on the broker's write path;
--                 rows of dropped partitions are removed when met, and by the walk
-- queue_id        as of the last look; the work list goes by the partition's own
-- segments_floor  no live segment at the head of the log is older; -infinity: unknown
-- txns_floor      likewise for sidecar rows
-- look_xid        not NULL: to be looked at whatever its floors say (new, reset, lowered,
--                 released), and marked by this transaction; what a look has covered is told by its
--                 snapshot's xmin, so later looks need not read older index entries, dead ones
--                 above all
-- pinned_since    not NULL: old enough for rule 2, but held by its slowest group
-- pinned_group    that group; NULL: nobody consumes
-- pinned_offset   what the group must have committed to let the head go
--
-- Every update changes an indexed column, so none is HOT and a low fillfactor would be waste; what
-- the rows need is vacuum early, and no truncation, which would lock the table.
CREATE TABLE IF NOT EXISTS @log@.retention_floors (
    partition_id uuid PRIMARY KEY,
    queue_id uuid NOT NULL,
    segments_floor timestamptz NOT NULL DEFAULT '-infinity',
    txns_floor timestamptz NOT NULL DEFAULT '-infinity',
    look_xid bigint,
    pinned_since timestamptz,
    pinned_group text,
    pinned_offset bigint
) WITH (
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
)
