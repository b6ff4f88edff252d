-- signature: delivery_target_digest_v1()
--
-- Trigger function: fills in target_digest, the SHA-256 of the target in hexadecimal, for a writer
-- that left it out. Locks: none. Transaction: the writer's.
CREATE OR REPLACE FUNCTION @event@.delivery_target_digest_v1()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $qretention$
BEGIN
    NEW.target_digest := encode(sha256(convert_to(NEW.target, getdatabaseencoding())), 'hex');
    RETURN NEW;
END
$qretention$
