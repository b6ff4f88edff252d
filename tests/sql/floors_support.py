"""Short ways to ask what the floors say, for their tests."""

HOUR = 3600
UNKNOWN = "-infinity"


def floors(log, pid, *columns):
    columns = columns or ("segments_floor", "txns_floor")
    rows = log.sql(
        f"SELECT {', '.join(f'{c}::text' for c in columns)} FROM {{q}}.retention_floors"
        " WHERE partition_id = %s",
        pid,
    )
    return rows[0] if rows else None


def is_at(log, pid, column, age):
    """Whether a floor is the date of a row of that age."""
    return log.one(
        f"SELECT {column} = %s FROM {{q}}.retention_floors WHERE partition_id = %s",
        log.at(age),
        pid,
    )


def states(rows):
    return {row.partition_id: row.state for row in rows}


def listed(client, **options):
    return {item.partition_id: item for item in client.due(**options)[0]}


def cutoffs(item):
    return [name[:-7] for name in item if name.endswith("_cutoff") and item[name] is not None]


def writes(log):
    """Row versions written to the floors so far, counted by the server."""
    log.sql("SELECT pg_stat_force_next_flush()")
    return log.one(
        "SELECT n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables"
        " WHERE relname = 'retention_floors'"
    )
