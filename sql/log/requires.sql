-- Refuses to install the part "log" where a broker's table is missing, before anything is created.
-- Locks: none. Writes nothing.
DO $qretention$
DECLARE
    v_table pg_catalog.text;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    FOREACH v_table IN ARRAY ARRAY['queues', 'log_partitions', 'log_segments', 'log_txns',
        'log_consumers', 'log_dlq', 'retention_history']
    LOOP
        IF to_regclass(format('%I.%I', @log_literal@, v_table)) IS NULL THEN
            RAISE EXCEPTION 'the broker''s table %.% does not exist', @log_literal@, v_table
                USING ERRCODE = 'undefined_table',
                    HINT = 'Check the option log_schema, or install the part "broker" first.';
        END IF;
    END LOOP;
END
$qretention$
