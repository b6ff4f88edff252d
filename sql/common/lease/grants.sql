-- What the role that runs retention needs of the lease (option grant_role): SELECT and UPDATE on its row,
-- EXECUTE on its functions. Locks: none that others wait for. One transaction.
DO $qretention$
DECLARE
    v_role constant pg_catalog.text := @role_literal@;
    v_function pg_catalog.regprocedure;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF v_role IS NULL THEN
        RETURN;
    END IF;
    IF NOT has_table_privilege(v_role, format('%I.retention_lease', @part_literal@), 'SELECT, UPDATE')
        OR NOT has_table_privilege(v_role, format('%I.retention_lease', @part_literal@), 'UPDATE')
    THEN
        EXECUTE format('GRANT SELECT, UPDATE ON %I.retention_lease TO %I', @part_literal@, v_role);
    END IF;
    FOR v_function IN
        SELECT p.oid
        FROM @part@.retention_register AS r
        JOIN pg_proc AS p ON p.oid = to_regprocedure(format('%I.%s', @part_literal@, r.signature))
        WHERE r.signature ~ '^retention_(lease|fence)_'
    LOOP
        IF NOT has_function_privilege(v_role, v_function, 'EXECUTE') THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', v_function, v_role);
        END IF;
    END LOOP;
END
$qretention$
