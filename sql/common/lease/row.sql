-- The lease's one row. Locks: none where it is there already.
INSERT INTO @part@.retention_lease (only_row) VALUES (true) ON CONFLICT DO NOTHING
