-- What the statements of the library run under; one row.
--
-- $1 local bool           true: until the end of the transaction; false: for the session, which is
--                         then the library's own
-- $2 statement_timeout ms int8, $3 lock_timeout ms int8, $4 late_lock ms int8
-- $5 idle_limit ms int8   when the server gives a silent client up; 0: as configured
--
-- transaction_timeout (PostgreSQL 17): a peer that dies between a statement and its sync point leaves a transaction
-- that no other limit ends. Two statements run in ours, a fence and a step. 0 first, since a limit that runs already
-- is not put off by a longer one. client_encoding: names in our statements are UTF-8, whatever a host's connection
-- says of its own. An SQL_ASCII server checks what it sends as UTF-8, and fails the statement over a notice with other
-- bytes; raw, they are escaped here. A MULE_INTERNAL server speaks no UTF-8 at all.
-- A setting that this server does not know is left out. jit: compiling costs 200 ms on statements
-- that take 1 ms. synchronous_commit: losing the last commits in a crash repeats deletes and loses
-- nothing. search_path: nobody's operators but the server's own. client_min_messages: a borrowed
-- connection's notice hooks are the host's, so nothing is said to them; an owned one's go to the log.
-- Locks: none. Transaction: the caller's.
SELECT pg_catalog.count(pg_catalog.set_config(s.name, s.value, $1::pg_catalog.bool))
FROM (
    VALUES
        ('search_path', 'pg_catalog, pg_temp'),
        ('jit', 'off'),
        ('synchronous_commit', 'off'),
        ('client_min_messages', CASE WHEN $1::pg_catalog.bool THEN 'error' ELSE 'notice' END),
        ('statement_timeout', $2::pg_catalog.int8::pg_catalog.text),
        ('lock_timeout', $3::pg_catalog.int8::pg_catalog.text),
        ('qretention.late_lock_ms', $4::pg_catalog.int8::pg_catalog.text),
        ('transaction_timeout', '0'),
        ('transaction_timeout',
            CASE WHEN $2::pg_catalog.int8 OPERATOR(pg_catalog.>) 0 AND $5::pg_catalog.int8 OPERATOR(pg_catalog.>) 0
                THEN LEAST($2::pg_catalog.int8 OPERATOR(pg_catalog.*) 2 OPERATOR(pg_catalog.+) $5::pg_catalog.int8,
                    2147483647)::pg_catalog.text END),
        ('client_encoding', CASE
            WHEN pg_catalog.current_setting('server_encoding') OPERATOR(pg_catalog.=) 'SQL_ASCII' THEN 'SQL_ASCII'
            WHEN $1::pg_catalog.bool AND pg_catalog.current_setting('server_encoding')
                OPERATOR(pg_catalog.<>) 'MULE_INTERNAL' THEN 'UTF8' END),
        ('default_transaction_isolation', CASE WHEN NOT $1::pg_catalog.bool THEN 'read committed' END),
        ('default_transaction_deferrable', CASE WHEN NOT $1::pg_catalog.bool THEN 'off' END),
        ('idle_in_transaction_session_timeout',
            CASE WHEN NOT $1::pg_catalog.bool AND $5::pg_catalog.int8 OPERATOR(pg_catalog.>) 0
                THEN $5::pg_catalog.int8::pg_catalog.text END),
        ('idle_session_timeout',
            CASE WHEN NOT $1::pg_catalog.bool AND $5::pg_catalog.int8 OPERATOR(pg_catalog.>) 0
                THEN $5::pg_catalog.int8::pg_catalog.text END),
        ('client_connection_check_interval',
            CASE WHEN NOT $1::pg_catalog.bool AND $5::pg_catalog.int8 OPERATOR(pg_catalog.>) 0
                THEN LEAST($5::pg_catalog.int8, 5000)::pg_catalog.text END),
        ('tcp_user_timeout',
            CASE WHEN NOT $1::pg_catalog.bool AND $5::pg_catalog.int8 OPERATOR(pg_catalog.>) 0
                THEN $5::pg_catalog.int8::pg_catalog.text END),
        ('tcp_keepalives_idle',
            CASE WHEN NOT $1::pg_catalog.bool AND $5::pg_catalog.int8 OPERATOR(pg_catalog.>) 0
                THEN GREATEST($5::pg_catalog.int8 OPERATOR(pg_catalog./) 4000, 1)::pg_catalog.text END),
        ('tcp_keepalives_interval',
            CASE WHEN NOT $1::pg_catalog.bool AND $5::pg_catalog.int8 OPERATOR(pg_catalog.>) 0
                THEN GREATEST($5::pg_catalog.int8 OPERATOR(pg_catalog./) 4000, 1)::pg_catalog.text END),
        ('tcp_keepalives_count',
            CASE WHEN NOT $1::pg_catalog.bool AND $5::pg_catalog.int8 OPERATOR(pg_catalog.>) 0
                THEN '3' END)
) AS s(name, value)
WHERE s.value IS NOT NULL
  AND (pg_catalog.current_setting(s.name, true) IS NOT NULL
       OR s.name OPERATOR(pg_catalog.=) 'qretention.late_lock_ms')
