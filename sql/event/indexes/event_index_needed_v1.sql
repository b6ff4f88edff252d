-- signature: event_index_needed_v1(text)
--
-- Whether an index that the prune reads has to be created, or one like it is there already under
-- whatever name, as on tables that another framework made. Asked by the installer before each.
--
-- p_index  'recorded_at', 'own_window', 'expiry', 'policy', 'deliveries', 'unfinished'
-- Returns true where there is none; NULL for a name that is none of these.
--
-- Alike is: a valid b-tree whose first columns are the ones wanted, in order, ascending, without
-- predicate or with the very one. Types (varchar or text) and the two ways to write "not equal"
-- make no difference. The expiry is an expression of ours, so only an index of its name can be it.
-- Locks: none. Reads the catalogs.
CREATE OR REPLACE FUNCTION @event@.event_index_needed_v1(p_index text)
RETURNS boolean
LANGUAGE sql
STABLE
SET search_path = pg_catalog, pg_temp
AS $qretention$
    WITH wanted AS (
        SELECT need.*
        FROM (
            VALUES
                ('recorded_at', @event_table_literal@, '{recorded_at}'::text[], NULL::text),
                ('own_window', @event_table_literal@, '{recorded_at}',
                    'retention_secondsISNOTNULL'),
                ('policy', @event_table_literal@, '{delete_when,recorded_at}', 'delete_when<>'''''),
                ('expiry', @event_table_literal@, NULL, NULL),
                ('deliveries', @delivery_table_literal@, '{event_id}', NULL),
                ('unfinished', @delivery_table_literal@, '{event_id}', 'status<>''succeeded''')
        ) AS need (name, relation, columns, predicate)
        WHERE need.name = p_index
    ), existing AS (
        SELECT
            i.indrelid,
            c.relname,
            ARRAY(
                -- One in another order is NULL, and so is like no column.
                SELECT CASE WHEN i.indoption[n - 1] = 0
                    THEN pg_get_indexdef(i.indexrelid, n, false) END
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
            AND CASE WHEN w.columns IS NULL
                THEN e.relname = 'retention_event_expiry_idx'
                ELSE e.columns[1:cardinality(w.columns)] = w.columns
                    AND (e.predicate IS NULL OR e.predicate = w.predicate)
                    -- Everything unfinished is in an index of everything, but so is the history.
                    AND (e.predicate IS NOT NULL
                        OR p_index NOT IN ('own_window', 'policy', 'unfinished'))
            END
    )
    FROM wanted AS w
$qretention$
