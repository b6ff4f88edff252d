-- Refuses to go on where a table or a column that the prune reads is missing: the names given at
-- install were wrong, or the tables are of an older release of their owner. Likewise without the
-- two constraints that it relies on: the foreign key, deferred or not, makes a delivery that is
-- added to an event being pruned fail in its writer; the unique key, which may not be deferrable,
-- is what the last successes are written by.
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
    IF NOT EXISTS (
        SELECT FROM pg_constraint AS c
        JOIN pg_attribute AS d ON d.attrelid = c.conrelid AND d.attname = 'event_id'
        JOIN pg_attribute AS e ON e.attrelid = c.confrelid AND e.attname = 'id'
        WHERE c.contype = 'f' AND c.convalidated
            AND c.conrelid = to_regclass(@delivery_table_literal@)
            AND c.confrelid = to_regclass(@event_table_literal@)
            AND c.conkey = ARRAY[d.attnum] AND c.confkey = ARRAY[e.attnum]
    ) THEN
        RAISE EXCEPTION 'the outbox table % has no valid foreign key from event_id to the id of %',
            @delivery_table_literal@, @event_table_literal@
            USING ERRCODE = 'invalid_schema_definition',
                HINT = 'Add it, or validate it with ALTER TABLE ... VALIDATE CONSTRAINT.';
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_index AS i
        JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attname = 'receiver_key'
        WHERE i.indrelid = to_regclass(@success_table_literal@)
            AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL
            AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum
    ) THEN
        RAISE EXCEPTION 'the outbox table % has no unique key on receiver_key',
            @success_table_literal@
            USING ERRCODE = 'invalid_schema_definition',
                HINT = 'Add a unique constraint on receiver_key that is not deferrable.';
    END IF;
END
$qretention$
