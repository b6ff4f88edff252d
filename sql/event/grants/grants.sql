-- What the role that prunes needs, and nothing else; only when an install names one (grant_role).
--
--   the schema of the event part, and those of the tables   USAGE
--   event     SELECT (id, recorded_at, retention_seconds, delete_when), DELETE,
--             UPDATE (suppressed_reason)
--   delivery  SELECT (id, event_id, receiver_key, status, succeeded_at), DELETE,
--             UPDATE (completed_at)
--   receiver_last_success  SELECT, INSERT (receiver_key, last_succeeded_at), UPDATE
--             (last_succeeded_at) and USAGE of the sequence of its id where it has one
--   retention_schema  SELECT
--   functions  EXECUTE on the prune's, and on quiet_receivers_v1
--
-- UPDATE is for the locks: locking a row asks for the right to update one of its columns, and
-- nothing is updated. So the role reads no payload. record_event_v1 is for the hosts' own roles. A
-- foreign key that cascades runs as the owner of the tables.
-- A right that the role already has, from whatever source, is not granted again, so that an install
-- on a running system writes nothing to the catalogs the second time.
-- Locks: none that others wait for. One transaction.
DO $qretention$
DECLARE
    v_role constant pg_catalog.text := @role_literal@;
    v_event constant pg_catalog.regclass := pg_catalog.to_regclass(@event_table_literal@);
    v_delivery constant pg_catalog.regclass := pg_catalog.to_regclass(@delivery_table_literal@);
    v_success constant pg_catalog.regclass := pg_catalog.to_regclass(@success_table_literal@);
    v_grant record;
    v_column pg_catalog.text;
    v_sequence pg_catalog.text;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF v_role IS NULL THEN
        RETURN;
    END IF;

    FOR v_grant IN
        SELECT n.oid, n.nspname AS name
        FROM pg_namespace AS n
        WHERE n.nspname = @event_literal@
            OR n.oid IN (SELECT c.relnamespace FROM pg_class AS c
                WHERE c.oid IN (v_event, v_delivery, v_success))
    LOOP
        IF NOT has_schema_privilege(v_role, v_grant.oid, 'USAGE') THEN
            EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', v_grant.name, v_role);
        END IF;
    END LOOP;

    FOR v_grant IN
        SELECT wanted.relation, wanted.privilege, wanted.columns
        FROM (
            VALUES
                (v_event, 'SELECT', '{id,recorded_at,retention_seconds,delete_when}'::text[]),
                (v_event, 'DELETE', NULL),
                (v_event, 'UPDATE', '{suppressed_reason}'),
                (v_delivery, 'SELECT', '{id,event_id,receiver_key,status,succeeded_at}'),
                (v_delivery, 'DELETE', NULL),
                (v_delivery, 'UPDATE', '{completed_at}'),
                (v_success, 'SELECT', NULL),
                (v_success, 'INSERT', '{receiver_key,last_succeeded_at}'),
                (v_success, 'UPDATE', '{last_succeeded_at}'),
                (to_regclass(format('%I.retention_schema', @event_literal@)), 'SELECT', NULL)
        ) AS wanted (relation, privilege, columns)
    LOOP
        IF v_grant.columns IS NULL THEN
            IF NOT has_table_privilege(v_role, v_grant.relation, v_grant.privilege) THEN
                EXECUTE format('GRANT %s ON %s TO %I', v_grant.privilege, v_grant.relation, v_role);
            END IF;
            CONTINUE;
        END IF;
        FOREACH v_column IN ARRAY v_grant.columns LOOP
            IF NOT has_column_privilege(v_role, v_grant.relation, v_column, v_grant.privilege) THEN
                EXECUTE format('GRANT %s (%I) ON %s TO %I',
                    v_grant.privilege, v_column, v_grant.relation, v_role);
            END IF;
        END LOOP;
    END LOOP;

    IF EXISTS (SELECT FROM pg_attribute AS a
        WHERE a.attrelid = v_success AND a.attname = 'id' AND NOT a.attisdropped)
    THEN
        v_sequence := pg_get_serial_sequence(v_success::text, 'id');
    END IF;
    IF NOT has_sequence_privilege(v_role, v_sequence, 'USAGE') THEN
        EXECUTE format('GRANT USAGE ON SEQUENCE %s TO %I', v_sequence, v_role);
    END IF;

    FOR v_grant IN
        SELECT p.oid, p.oid::regprocedure AS name
        FROM @event@.retention_register AS r
        JOIN pg_proc AS p ON p.oid = to_regprocedure(format('%I.%s', @event_literal@, r.signature))
        WHERE r.signature ~ '^(event_prune_|event_index_|prune_events_|quiet_receivers_)'
    LOOP
        IF NOT has_function_privilege(v_role, v_grant.oid, 'EXECUTE') THEN
            EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO %I', v_grant.name, v_role);
        END IF;
    END LOOP;
END
$qretention$
