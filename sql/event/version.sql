-- Records that the part "event" is whole, as the last thing its install does. Never goes back: an
-- older library that installs beside a newer one leaves the newer number. Locks: one row. One
-- transaction.
INSERT INTO @event@.retention_schema AS installed (part, version, installed_at)
VALUES ('event', @version@, pg_catalog.now())
ON CONFLICT (part) DO UPDATE
SET version = EXCLUDED.version, installed_at = EXCLUDED.installed_at
WHERE installed.version OPERATOR(pg_catalog.<) EXCLUDED.version
