-- What the role that runs retention needs for the second steps and the floors, beside what the
-- contract's functions ask for; only when an install names one (grant_role).
--
--   retention_floors      SELECT, INSERT, UPDATE, DELETE
--   functions             EXECUTE on the second steps and on the functions of the floors
--
-- Not on retention_floors_inserted_v1: nobody calls a trigger function. A right that the role
-- already has is not granted again. Locks: none that others wait for. One transaction.
DO $qretention$
DECLARE
    v_role constant pg_catalog.text := @role_literal@;
    v_floors constant pg_catalog.regclass := pg_catalog.to_regclass(
        pg_catalog.format('%I.retention_floors', @log_literal@));
    v_privilege pg_catalog.text;
    v_function pg_catalog.regprocedure;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF v_role IS NULL THEN
        RETURN;
    END IF;
    FOREACH v_privilege IN ARRAY ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'] LOOP
        IF NOT has_table_privilege(v_role, v_floors, v_privilege) THEN
            EXECUTE format('GRANT %s ON %s TO %I', v_privilege, v_floors, v_role);
        END IF;
    END LOOP;
    FOR v_function IN
        SELECT to_regprocedure(format('%I.%s', @log_literal@, wanted.signature))
        FROM (
            VALUES
                ('retention_late_wait_v2(timestamptz)'),
                ('log_retention_core_v2(uuid, timestamptz, timestamptz, int, text, boolean)'),
                ('log_txns_purge_core_v2(uuid, timestamptz, int, boolean)'),
                ('log_retention_step_v2(uuid, timestamptz, timestamptz, int, text)'),
                ('log_evict_max_wait_step_v2(uuid, timestamptz, int)'),
                ('log_txns_purge_step_v2(uuid, timestamptz, int)'),
                ('retention_cutoffs_v1(timestamptz, uuid[])'),
                ('retention_floors_look_v1(uuid[], timestamptz, uuid[])'),
                ('retention_floors_refresh_v1(uuid[], timestamptz)'),
                ('retention_floors_due_v1(timestamptz, int, uuid, uuid[], bigint, uuid[],'
                    ' bigint[], timestamptz[], timestamptz[])'),
                ('retention_floors_pinned_v1(timestamptz, uuid, int)'),
                ('retention_floors_walk_v1(timestamptz, uuid, int)'),
                ('retention_floors_reset_v1(uuid)')
        ) AS wanted (signature)
    LOOP
        IF NOT has_function_privilege(v_role, v_function, 'EXECUTE') THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', v_function, v_role);
        END IF;
    END LOOP;
END
$qretention$
