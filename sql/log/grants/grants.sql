-- What the role that runs retention needs, and nothing else; only when an install names one
-- (grant_role).
--
--   the log schema        USAGE
--   queues                SELECT
--   log_partitions        SELECT, DELETE, UPDATE (log_start, txns_start)
--   log_segments          SELECT (partition_id, base_offset, end_offset, created_at), DELETE
--   log_txns              SELECT (partition_id, base_offset, end_offset, created_at), DELETE
--   log_consumers         SELECT, UPDATE (created_at): never updated, but locking a row asks for
--                         the right to update one column, and this one moves no cursor
--   log_dlq               SELECT (partition_id)
--   retention_history     SELECT, INSERT, DELETE; USAGE of its id's sequence, if there is one
--   worker_metrics, queue_lag_metrics, queue_parked_replica, system_metrics
--                         SELECT, DELETE, where they exist
--   retention_schema      SELECT
--   the streams schema    USAGE, and state: SELECT (partition_id), where the state table exists
--   functions             EXECUTE on those of the contract and on ours that they call
--
-- So the role reads no message: neither blobs nor hashes nor dead letters. It cannot install, and
-- it cannot remove a queue: delete_queue_v1 is for whoever owns the tables. Cascades run as the
-- owners. A right that the role already has, from whatever source, is not granted again, so that an
-- install on a running system writes nothing to the catalogs the second time. Locks: none that
-- others wait for. One transaction.
DO $qretention$
DECLARE
    v_role constant pg_catalog.text := @role_literal@;
    v_log constant pg_catalog.text := @log_literal@;
    v_streams constant pg_catalog.text := @streams_literal@;
    v_ranges constant pg_catalog.text[] := '{partition_id,base_offset,end_offset,created_at}';
    v_grant pg_catalog.record;
    v_column pg_catalog.text;
    v_sequence pg_catalog.text;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF v_role IS NULL THEN
        RETURN;
    END IF;

    FOR v_grant IN
        SELECT n.nspname AS name
        FROM pg_namespace AS n
        WHERE n.nspname = v_log
            OR (n.nspname = v_streams
                AND EXISTS (
                    SELECT FROM pg_class AS c
                    WHERE c.relnamespace = n.oid AND c.relname = 'state' AND c.relkind IN ('r', 'p')
                ))
    LOOP
        IF NOT has_schema_privilege(v_role, v_grant.name, 'USAGE') THEN
            EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', v_grant.name, v_role);
        END IF;
    END LOOP;

    FOR v_grant IN
        SELECT c.oid, c.oid::regclass AS name, wanted.privilege, wanted.columns
        FROM (
            VALUES
                (v_log, 'queues', 'SELECT', NULL::text[]),
                (v_log, 'log_partitions', 'SELECT', NULL),
                (v_log, 'log_partitions', 'DELETE', NULL),
                (v_log, 'log_partitions', 'UPDATE', '{log_start,txns_start}'),
                (v_log, 'log_segments', 'SELECT', v_ranges),
                (v_log, 'log_segments', 'DELETE', NULL),
                (v_log, 'log_txns', 'SELECT', v_ranges),
                (v_log, 'log_txns', 'DELETE', NULL),
                (v_log, 'log_consumers', 'SELECT', NULL),
                (v_log, 'log_consumers', 'UPDATE', '{created_at}'),
                (v_log, 'log_dlq', 'SELECT', '{partition_id}'),
                (v_log, 'retention_history', 'SELECT', NULL),
                (v_log, 'retention_history', 'INSERT', NULL),
                (v_log, 'retention_history', 'DELETE', NULL),
                (v_log, 'worker_metrics', 'SELECT', NULL),
                (v_log, 'worker_metrics', 'DELETE', NULL),
                (v_log, 'queue_lag_metrics', 'SELECT', NULL),
                (v_log, 'queue_lag_metrics', 'DELETE', NULL),
                (v_log, 'queue_parked_replica', 'SELECT', NULL),
                (v_log, 'queue_parked_replica', 'DELETE', NULL),
                (v_log, 'system_metrics', 'SELECT', NULL),
                (v_log, 'system_metrics', 'DELETE', NULL),
                (v_log, 'retention_schema', 'SELECT', NULL),
                (v_streams, 'state', 'SELECT', '{partition_id}')
        ) AS wanted (schema, relation, privilege, columns)
        JOIN pg_namespace AS n ON n.nspname = wanted.schema
        JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = wanted.relation
            AND c.relkind IN ('r', 'p')
    LOOP
        IF v_grant.columns IS NULL THEN
            IF NOT has_table_privilege(v_role, v_grant.oid, v_grant.privilege) THEN
                EXECUTE format('GRANT %s ON %s TO %I', v_grant.privilege, v_grant.name, v_role);
            END IF;
            CONTINUE;
        END IF;
        FOREACH v_column IN ARRAY v_grant.columns LOOP
            IF NOT has_column_privilege(v_role, v_grant.oid, v_column, v_grant.privilege) THEN
                EXECUTE format('GRANT %s (%I) ON %s TO %I',
                    v_grant.privilege, v_column, v_grant.name, v_role);
            END IF;
        END LOOP;
    END LOOP;

    v_sequence := pg_get_serial_sequence(format('%I.retention_history', v_log), 'id');
    IF NOT has_sequence_privilege(v_role, v_sequence, 'USAGE') THEN
        EXECUTE format('GRANT USAGE ON SEQUENCE %s TO %I', v_sequence, v_role);
    END IF;

    FOR v_grant IN
        SELECT p.oid, p.oid::regprocedure AS name
        FROM (
            VALUES
                ('log_retention_boundary_v1(uuid, bigint, timestamptz)'),
                ('log_retention_step_v1(uuid, timestamptz, timestamptz, int, text)'),
                ('log_txns_purge_step_v1(uuid, timestamptz, int)'),
                ('log_evict_max_wait_step_v1(uuid, timestamptz, int)'),
                ('log_partition_dead_v1(uuid, timestamptz)'),
                ('log_partition_cleanup_step_v1(timestamptz, int)'),
                ('log_partition_cleanup_step_v2(timestamptz, int, uuid)'),
                ('retention_streams_check_v1()'),
                ('retention_streams_state_v1(uuid, boolean)'),
                ('retention_orphans_v1(uuid, uuid)'),
                ('retention_cleanup_lock_v1(timestamptz, uuid, uuid, int)'),
                ('retention_cleanup_remove_v1(uuid[], bigint)'),
                ('retention_cleanup_delete_v1(uuid[], timestamptz, int)'),
                ('cleanup_worker_metrics_v1(int)'),
                ('get_retention_timeseries_v1(jsonb)')
        ) AS wanted (signature)
        JOIN pg_proc AS p ON p.oid = to_regprocedure(format('%I.%s', v_log, wanted.signature))
    LOOP
        IF NOT has_function_privilege(v_role, v_grant.oid, 'EXECUTE') THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', v_grant.name, v_role);
        END IF;
    END LOOP;
END
$qretention$
