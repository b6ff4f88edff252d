"""What the database itself saw of the instances that delete from it."""

# Every deleting statement on the segments: which host, when it began, which transaction.
SPY = """
CREATE TABLE public.swept (
    at timestamptz DEFAULT clock_timestamp(), host text DEFAULT current_setting('application_name'),
    xid xid DEFAULT pg_current_xact_id()::xid, rows bigint, held boolean
);
CREATE FUNCTION public.spy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.swept (rows, held)
    SELECT count(*), EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted
        AND objid = 737001 AND pid = pg_backend_pid())
    FROM gone HAVING count(*) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER spy AFTER DELETE ON queen.log_segments REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION public.spy();
"""


def install(db):
    """Needs track_commit_timestamp."""
    db.sql(SPY)


def swept(db):
    """[(host, began, committed, rows)] of the committed deletes, in the order they began."""
    return db.sql(
        "SELECT host, at, pg_xact_commit_timestamp(xid), rows FROM public.swept ORDER BY at"
    )


def overlaps(db):
    """Pairs of deletes by different hosts of which one began before the other was committed."""
    rows = swept(db)
    return [
        (earlier, later)
        for index, earlier in enumerate(rows)
        for later in rows[index + 1 : index + 50]
        if earlier[0] != later[0] and later[1] < earlier[2]
    ]


def unguarded(db):
    """Deletes by a session that held no lock of the gate's key, shared or exclusive."""
    return db.one("SELECT count(*) FROM public.swept WHERE NOT held")
