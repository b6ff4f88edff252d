-- The trigger that fills in target_digest on our own delivery table. It runs only for rows that
-- come without one. Locks: SHARE ROW EXCLUSIVE on the table the first time. One transaction.
DO $qretention$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF EXISTS (
        SELECT FROM pg_trigger AS t
        WHERE t.tgrelid = @delivery_table_literal@::regclass AND t.tgname = 'delivery_target_digest'
    ) THEN
        RETURN;
    END IF;
    CREATE TRIGGER delivery_target_digest
        BEFORE INSERT ON @delivery_table@
        FOR EACH ROW WHEN (NEW.target_digest IS NULL)
        EXECUTE FUNCTION @event@.delivery_target_digest_v1();
END
$qretention$
