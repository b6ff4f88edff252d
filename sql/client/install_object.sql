-- Creates or upgrades one function through the register of its part. $1 signature text, $2 DDL text.
-- Column: verdict text (created, replaced, kept, foreign). Token @schema@. Locks: the register's.
SELECT @schema@.retention_install_v1($1::pg_catalog.text, $2::pg_catalog.text)
