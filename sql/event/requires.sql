-- Refuses to go on where a table or a column that the prune reads is missing: the names given at
-- install were wrong, or the tables are of an older release of their owner.
-- Locks: none. Writes nothing.
DO $qretention$
DECLARE
    v_need record;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    FOR v_need IN
        SELECT need.relation, need.name
        FROM (
            VALUES
                (@event_table_literal@, 'id'),
                (@event_table_literal@, 'recorded_at'),
                (@event_table_literal@, 'retention_seconds'),
                (@event_table_literal@, 'delete_when'),
                (@delivery_table_literal@, 'id'),
                (@delivery_table_literal@, 'event_id'),
                (@delivery_table_literal@, 'receiver_key'),
                (@delivery_table_literal@, 'status'),
                (@delivery_table_literal@, 'succeeded_at'),
                (@success_table_literal@, 'receiver_key'),
                (@success_table_literal@, 'last_succeeded_at')
        ) AS need (relation, name)
        LEFT JOIN pg_attribute AS a
            ON a.attrelid = to_regclass(need.relation) AND a.attname = need.name AND a.attnum > 0
        WHERE a.attnum IS NULL
    LOOP
        IF to_regclass(v_need.relation) IS NULL THEN
            RAISE EXCEPTION 'the outbox table % does not exist', v_need.relation
                USING ERRCODE = 'undefined_table',
                    HINT = 'Check the options event_table, delivery_table and success_table.';
        END IF;
        RAISE EXCEPTION 'the outbox table % has no column %', v_need.relation, v_need.name
            USING ERRCODE = 'undefined_column',
                HINT = 'Run the migrations of the outbox''s owner first.';
    END LOOP;
END
$qretention$
