-- retention_install_v1(p_signature text, p_ddl text) returns text: installs one of our functions.
--
-- p_signature  name and argument types, unqualified: 'log_partition_dead_v1(uuid, timestamptz)'
-- p_ddl        its CREATE OR REPLACE statement, body quoted with the tag of this file
-- Returns 'created'; 'replaced' (ours, and the statement differs from what was installed); 'kept'
-- (ours and up to date, or of a newer version); 'foreign' (not created by us, or changed since:
-- left alone).
--
-- What it creates is taken from PUBLIC in the same transaction, so that nobody can call it in
-- between; what it replaces keeps the grants that were given since. Locks: the register, against
-- other installers, only when there is something to change. Runs as its caller, who must own the
-- functions.
--
-- Sent as a literal, so that installing again when nothing changed writes nothing at all.
DO $qretention$
DECLARE
    v_source constant pg_catalog.text := $body$
DECLARE
    v_name constant text := format('%I.%s', @part_literal@, p_signature);
    v_statement_md5 constant text := md5(p_ddl);
    v_known @part@.retention_register;
    v_function regprocedure;
    v_source_md5 text;
    v_result text;
BEGIN
    FOR v_pass IN 1..2 LOOP
        v_function := to_regprocedure(v_name);
        v_source_md5 := (SELECT md5(p.prosrc) FROM pg_proc AS p WHERE p.oid = v_function);
        SELECT r.* INTO v_known FROM @part@.retention_register AS r WHERE r.signature = p_signature;
        IF v_function IS NULL THEN
            v_result := 'created';
        ELSIF v_known.source_md5 IS DISTINCT FROM v_source_md5 THEN
            RETURN 'foreign';
        ELSIF v_known.version > @version@
            OR (v_known.version = @version@ AND v_known.statement_md5 = v_statement_md5)
        THEN
            RETURN 'kept';
        ELSE
            v_result := 'replaced';
        END IF;
        -- Look again under the lock: another installer may have been faster.
        IF v_pass = 1 THEN
            LOCK TABLE @part@.retention_register IN SHARE ROW EXCLUSIVE MODE;
        END IF;
    END LOOP;

    EXECUTE p_ddl;
    v_function := to_regprocedure(v_name);
    IF v_function IS NULL THEN
        RAISE EXCEPTION 'the statement did not create %', v_name
            USING ERRCODE = 'undefined_function',
                HINT = 'The signature line of the file must match its statement.';
    END IF;
    IF v_result = 'created' THEN
        EXECUTE format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', v_function);
    END IF;
    INSERT INTO @part@.retention_register AS r
        (signature, source_md5, version, installed_at, statement_md5)
    SELECT p_signature, md5(p.prosrc), @version@, now(), v_statement_md5
    FROM pg_proc AS p
    WHERE p.oid = v_function
    ON CONFLICT (signature) DO UPDATE
    SET source_md5 = EXCLUDED.source_md5,
        version = EXCLUDED.version,
        installed_at = EXCLUDED.installed_at,
        statement_md5 = EXCLUDED.statement_md5;
    RETURN v_result;
END
$body$;
    v_installed pg_catalog.text;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    v_installed := (
        SELECT p.prosrc FROM pg_proc AS p
        WHERE p.oid = to_regprocedure(
            format('%I.%s', @part_literal@, 'retention_install_v1(text, text)'))
    );
    IF v_installed = v_source OR EXISTS (
        SELECT FROM @part@.retention_register AS r
        WHERE r.signature = 'retention_install_v1(text, text)' AND r.version > @version@
    ) THEN
        RETURN;
    END IF;
    EXECUTE format('CREATE OR REPLACE FUNCTION %I.retention_install_v1'
        '(p_signature text, p_ddl text) RETURNS text LANGUAGE plpgsql VOLATILE'
        ' SET search_path = pg_catalog, pg_temp AS %L',
        @part_literal@, v_source);
    EXECUTE format('REVOKE ALL ON FUNCTION %I.retention_install_v1(text, text) FROM PUBLIC',
        @part_literal@);
    INSERT INTO @part@.retention_register AS r (signature, source_md5, version, statement_md5)
    VALUES ('retention_install_v1(text, text)', md5(v_source), @version@, md5(v_source))
    ON CONFLICT (signature) DO UPDATE
    SET source_md5 = EXCLUDED.source_md5,
        version = EXCLUDED.version,
        installed_at = now(),
        statement_md5 = EXCLUDED.statement_md5;
END
$qretention$
