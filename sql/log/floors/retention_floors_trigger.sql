-- The trigger on log_partitions that files new partitions. ENABLE ALWAYS, so that a session that
-- applies or restores with session_replication_role = replica files them too.
--
-- Locks: SHARE ROW EXCLUSIVE on log_partitions, the first time only, in a transaction of its own;
-- run it with a lock timeout. Partitions that exist before it are filed by the backfill after it.
DO $qretention$
DECLARE
    v_table constant regclass := pg_catalog.to_regclass(
        pg_catalog.format('%I.log_partitions', @log_literal@));
    v_enabled "char";
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    SELECT t.tgenabled INTO v_enabled
    FROM pg_catalog.pg_trigger AS t
    WHERE t.tgrelid = v_table AND t.tgname = 'retention_floors_inserted';
    IF v_enabled IS NULL THEN
        CREATE TRIGGER retention_floors_inserted
            AFTER INSERT ON @log@.log_partitions
            REFERENCING NEW TABLE AS inserted
            FOR EACH STATEMENT
            EXECUTE FUNCTION @log@.retention_floors_inserted_v1();
    END IF;
    IF v_enabled IS DISTINCT FROM 'A' THEN
        ALTER TABLE @log@.log_partitions ENABLE ALWAYS TRIGGER retention_floors_inserted;
    END IF;
END
$qretention$
