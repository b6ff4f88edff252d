-- State that streams queries keep per partition. A row keeps its partition. No foreign key on the
-- partition: a clean-up must not silently delete state that still matters. The index that the
-- clean-up probes by belongs to the part "log", since existing databases need it too. Locks: none
-- where the table exists; otherwise those of creating it. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF to_regclass(format('%I.%I', @streams_literal@, 'state')) IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE TABLE @streams@.state (
        query_id uuid NOT NULL REFERENCES @streams@.queries (id) ON DELETE CASCADE,
        partition_id uuid NOT NULL,
        key text NOT NULL,
        value jsonb,
        updated_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (query_id, partition_id, key)
    );
END
$qretention$
