-- signature: event_index_needed_v1(text)
--
-- Whether an index that the prune reads has to be created, or one like it is there already under
-- whatever name, as on tables that another framework made. Asked by the installer before each.
--
-- p_index  'recorded_at', 'own_window', 'default_window', 'expiry', 'policy', 'deliveries',
--          'unfinished'
-- Returns true where there is none; NULL for a name that is none of these.
--
-- Alike is: a valid b-tree whose first columns are the ones wanted, in order, ascending, without
-- predicate or with the very one. Types (varchar or text), the two ways to write "not equal" and
-- how a server writes an expression back make no difference. Names do not count: one of ours may
-- be on another table, or on this one and something else.
-- Locks: none. Reads the catalogs.
CREATE OR REPLACE FUNCTION @event@.event_index_needed_v1(p_index text)
RETURNS boolean
LANGUAGE sql
STABLE
SET search_path = pg_catalog, pg_temp
SET datestyle = 'ISO, YMD'
SET timezone = 'UTC'
SET quote_all_identifiers = off
SET standard_conforming_strings = on
AS $qretention$
    WITH wanted AS (
        SELECT need.*
        FROM (
            VALUES
                ('recorded_at', @event_table_literal@, '{recorded_at}'::text[], NULL::text),
                ('own_window', @event_table_literal@, '{recorded_at}',
                    'retention_secondsISNOTNULL'),
                ('policy', @event_table_literal@, '{delete_when,recorded_at}', 'delete_when<>'''''),
                ('default_window', @event_table_literal@, '{recorded_at,id}',
                    'retention_secondsISNULL'),
                ('expiry', @event_table_literal@, ARRAY[
                    'CASEWHENrecorded_at>=''0001-01-0100:00:00+00'''
                    'ANDrecorded_at<''9999-01-0100:00:00+00''ANDretention_seconds>0'
                    'THENrecorded_atATTIMEZONE''UTC''+make_intervalsecs=>retention_seconds'
                    'ELSE''infinity''END', 'id'], 'retention_secondsISNOTNULL'),
                ('deliveries', @delivery_table_literal@, '{event_id}', NULL),
                ('unfinished', @delivery_table_literal@, '{event_id}', 'status<>''succeeded''')
        ) AS need (name, relation, columns, predicate)
        WHERE need.name = p_index
    ), existing AS (
        SELECT
            i.indrelid,
            ARRAY(
                -- One in another order is NULL, and so is like no column. Version 13 writes the
                -- time zone as the function that it is.
                SELECT CASE WHEN i.indoption[n - 1] = 0 THEN regexp_replace(
                    regexp_replace(
                        pg_get_indexdef(i.indexrelid, n, false),
                        'timezone\(''UTC''::text, recorded_at\)',
                        'recorded_atATTIMEZONE''UTC'''),
                    '::(text|double precision|timestamp with(out)? time zone)|[()\s]', '', 'g')
                END
                FROM generate_series(1, i.indnkeyatts) AS n
                ORDER BY n
            ) AS columns,
            regexp_replace(
                regexp_replace(pg_get_expr(i.indpred, i.indrelid),
                    '::(text|character varying(\(\d+\))?)|[()\s]', '', 'g'),
                '^NOT(\w+)=', '\1<>') AS predicate
        FROM pg_index AS i
        JOIN pg_class AS c ON c.oid = i.indexrelid
        JOIN pg_am AS m ON m.oid = c.relam
        WHERE i.indisvalid AND i.indisready AND i.indislive AND m.amname = 'btree'
    )
    SELECT NOT EXISTS (
        SELECT FROM existing AS e
        WHERE e.indrelid = to_regclass(w.relation)
            AND e.columns[1:cardinality(w.columns)] = w.columns
            -- What is wanted apart is in an index of everything too, but so is all the rest.
            AND (e.predicate = w.predicate OR (e.predicate IS NULL AND w.predicate IS NULL))
    )
    FROM wanted AS w
$qretention$
