"""Installing the event part: on its own tables and on others, again, for a role of little."""

import os

import psycopg2
import pytest

from event.installing import install_event
from event.outbox import ARMS, DAY, DJANGO_TABLES, WINDOW, Outbox, make_django_tables
from pg import install, qret
from pg.install import quote_name

OLD = WINDOW + DAY
CATALOG = """
SELECT relation::text, def FROM (
    SELECT indrelid::regclass AS relation, pg_get_indexdef(indexrelid) AS def FROM pg_index
    UNION ALL SELECT conrelid::regclass, pg_get_constraintdef(oid) FROM pg_constraint
    UNION ALL SELECT attrelid::regclass, attname || format_type(atttypid, atttypmod) || attnotnull
        FROM pg_attribute WHERE attnum > 0
    UNION ALL SELECT tgrelid::regclass, pg_get_triggerdef(oid) FROM pg_trigger
        WHERE NOT tgisinternal
) AS everything
WHERE relation::text LIKE 'django_domain_events%' ORDER BY 1, 2
"""


def indexes(database, table):
    return {
        row[0]
        for row in database.sql(
            "SELECT c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid"
            " WHERE i.indrelid = %s::regclass AND i.indisvalid",
            table,
        )
    }


def test_install_again_changes_nothing(event_db):
    before = event_db.sql("SELECT max(xmin::text), count(*) FROM pg_proc")
    written = "SELECT xmin::text, signature FROM outbox.retention_register ORDER BY 2"
    register = event_db.sql(written)
    install_event(event_db.dsn)
    assert event_db.sql("SELECT max(xmin::text), count(*) FROM pg_proc") == before
    assert event_db.sql(written) == register
    assert event_db.one("SELECT version FROM outbox.retention_schema WHERE part = 'event'") == 1


def test_install_alters_nothing_of_djangos_but_adds_the_missing_index(empty_db):
    make_django_tables(empty_db)
    before = empty_db.sql(CATALOG)
    install_event(empty_db.dsn, **DJANGO_TABLES)
    added = [row for row in empty_db.sql(CATALOG) if row not in before]
    assert [row for row in before if row not in empty_db.sql(CATALOG)] == []
    assert [row[1].split()[2] for row in added] == [
        "retention_event_default_window_idx_host",
        "retention_event_expiry_idx_host",
    ]
    assert empty_db.one("SELECT to_regclass('outbox.event')") is None


def test_install_creates_what_djangos_tables_lack(empty_db):
    make_django_tables(empty_db)
    for index in ("eventrecord_recorded_at_5f2c", "dde_own_window", "dde_policy", "dde_unfinished"):
        empty_db.sql(f"DROP INDEX public.{index}")
    empty_db.sql(
        "ALTER TABLE public.django_domain_events_deliveryrecord DROP CONSTRAINT unique_delivery"
    )
    install_event(empty_db.dsn, **DJANGO_TABLES)
    ours = indexes(empty_db, DJANGO_TABLES["event_table"]) | indexes(
        empty_db, DJANGO_TABLES["delivery_table"]
    )
    assert {name for name in ours if name.startswith("retention_")} == {
        "retention_event_default_window_idx_host",
        "retention_event_policy_idx_host",
        "retention_event_expiry_idx_host",
        "retention_delivery_event_idx_host",
        "retention_delivery_unfinished_idx_host",
    }


def test_E5_an_index_is_known_by_what_it_is_and_not_by_its_name(outbox):
    needed = "SELECT outbox.event_index_needed_v1(%s)"
    suffix = "_host" if outbox.event_table.startswith("public.") else ""
    schema = outbox.event_table.split(".")[0]
    for name in ("expiry", "default_window"):
        index = f"{schema}.retention_event_{name}_idx{suffix}"
        definition = outbox.one("SELECT pg_get_indexdef(%s::regclass)", index)
        assert not outbox.one(needed, name)
        outbox.sql(f"DROP INDEX {index}")
        outbox.sql(f"CREATE INDEX retention_event_{name}_idx{suffix} ON {{event}} (name)")
        assert outbox.one(needed, name)
        outbox.sql(definition.replace(f"retention_event_{name}_idx{suffix}", f"theirs_{name}"))
        for setting in (
            "timezone = 'Asia/Kathmandu'",
            "datestyle = 'German, DMY'",
            "quote_all_identifiers = on",
            "standard_conforming_strings = off",
        ):
            outbox.sql(f"SET {setting}")
            assert not outbox.one(needed, name), setting
        outbox.sql("RESET standard_conforming_strings")


def test_E5_a_window_of_another_reckoning_is_not_the_expiry(django):
    django.sql("DROP INDEX public.retention_event_expiry_idx_host")
    for key in (
        "(recorded_at AT TIME ZONE 'UTC') + make_interval(secs => retention_seconds)",
        "CASE WHEN recorded_at >= '0001-01-01 00:00:00+00' AND recorded_at <"
        " '9999-01-01 00:00:00+00' AND retention_seconds > 0 THEN (recorded_at AT TIME ZONE"
        " 'Europe/Rome') + make_interval(secs => retention_seconds) ELSE 'infinity' END",
    ):
        django.sql(f"CREATE INDEX ON {{event}} (({key}), id) WHERE retention_seconds IS NOT NULL")
        assert django.one("SELECT outbox.event_index_needed_v1('expiry')")


def test_E5_a_second_outbox_in_one_schema_has_its_own_indexes(empty_db):
    make_django_tables(empty_db)
    second = {}
    for key, table in DJANGO_TABLES.items():
        second[key] = table.replace("public.django", "public.second")
        empty_db.sql(f"CREATE TABLE {second[key]} (LIKE {table} INCLUDING CONSTRAINTS"
                     " INCLUDING DEFAULTS INCLUDING IDENTITY, PRIMARY KEY (id))")
    empty_db.sql(f"ALTER TABLE {second['delivery_table']} ADD FOREIGN KEY (event_id) REFERENCES"
                 f" {second['event_table']} (id)")
    empty_db.sql(f"ALTER TABLE {second['success_table']} ADD UNIQUE (receiver_key)")
    for schema, tables in (("one", DJANGO_TABLES), ("two", second)):
        with qret.Context(empty_db.dsn, engines="event", event_schema=schema, **tables) as library:
            library.install("event")
            library.install("event")
        for name in ("default_window", "expiry", "policy", "unfinished", "deliveries"):
            assert not empty_db.one(f"SELECT {schema}.event_index_needed_v1(%s)", name), name
    ours = indexes(empty_db, second["event_table"]) | indexes(empty_db, second["delivery_table"])
    assert len({name for name in ours if name.startswith("retention_")}) == 5


def test_E5_a_missing_index_is_never_fatal_and_is_told(django):
    events = [django.event("succeeded", age=OLD, **form) for form in ({}, {"policy": "settled"})]
    owed = django.event("pending", age=OLD)
    for index in ("eventrecord_recorded_at_5f2c", "dde_policy", "dde_unfinished"):
        django.sql(f"DROP INDEX public.{index}")
    for index in ("expiry", "default_window"):
        django.sql(f"DROP INDEX public.retention_event_{index}_idx_host")
    assert django.pruned() == set(events)
    assert django.events() == {owed}
    needed = {
        name
        for name in ("default_window", "policy", "expiry", "unfinished", "deliveries")
        if django.one("SELECT outbox.event_index_needed_v1(%s)", name)
    }
    assert needed == {"default_window", "policy", "expiry", "unfinished"}


def test_install_names_the_table_that_is_missing(empty_db):
    with pytest.raises(psycopg2.errors.UndefinedTable, match="nowhere") as refused:
        install_event(empty_db.dsn, **{**DJANGO_TABLES, "event_table": "public.nowhere"})
    assert "event_table" in refused.value.diag.message_hint


def test_install_names_the_column_that_is_missing(empty_db):
    make_django_tables(empty_db)
    empty_db.sql(f"ALTER TABLE {DJANGO_TABLES['event_table']} DROP COLUMN retention_seconds")
    with pytest.raises(psycopg2.errors.UndefinedColumn, match="retention_seconds"):
        install_event(empty_db.dsn, **DJANGO_TABLES)


@pytest.mark.parametrize(
    "breaking, message",
    [
        (
            "ALTER TABLE {delivery} DROP CONSTRAINT"
            " django_domain_events_deliveryrecord_event_id_fkey",
            "foreign key",
        ),
        (
            "ALTER TABLE {delivery} DROP CONSTRAINT"
            " django_domain_events_deliveryrecord_event_id_fkey;"
            " ALTER TABLE {delivery} ADD FOREIGN KEY (event_id) REFERENCES {event} (id) NOT VALID",
            "foreign key",
        ),
        (
            "ALTER TABLE {success} DROP CONSTRAINT"
            " django_domain_events_receiverlastsuccess_receiver_key_key",
            "unique key",
        ),
        (
            "ALTER TABLE {success} DROP CONSTRAINT"
            " django_domain_events_receiverlastsuccess_receiver_key_key;"
            " ALTER TABLE {success} ADD UNIQUE (receiver_key, last_succeeded_at)",
            "unique key",
        ),
    ],
)
def test_install_refuses_tables_without_their_keys(empty_db, breaking, message):
    make_django_tables(empty_db)
    Outbox(empty_db, **DJANGO_TABLES).sql(breaking)
    with pytest.raises(psycopg2.errors.InvalidSchemaDefinition, match=message) as refused:
        install_event(empty_db.dsn, **DJANGO_TABLES)
    assert refused.value.diag.message_hint
    assert empty_db.one("SELECT to_regproc('outbox.event_prune_step_v1')") is None


def test_an_index_in_another_order_is_not_taken_for_ours(django):
    django.sql("DROP INDEX public.dde_policy")
    django.sql("CREATE INDEX ON {event} (name DESC, delete_when, recorded_at)")
    django.sql(
        "CREATE INDEX ON {event} (name DESC, delete_when, recorded_at) WHERE delete_when <> ''"
    )
    django.sql("CREATE INDEX ON {event} (delete_when, recorded_at DESC) WHERE delete_when <> ''")
    assert django.one("SELECT outbox.event_index_needed_v1('policy')")
    django.sql(
        "CREATE INDEX ON {event} (delete_when, recorded_at, id DESC) WHERE delete_when <> ''"
    )
    assert not django.one("SELECT outbox.event_index_needed_v1('policy')")


def test_only_invalid_indexes_of_our_tables_are_dropped(django):
    path = os.path.join(install.SQL, "client", "install_invalid_index.sql")
    text = install.read(path, install.tokens(**DJANGO_TABLES))
    text = text.replace("%", "%%").replace("$1::", "%s::")
    django.sql("CREATE TABLE public.theirs (a int)")
    django.sql("CREATE INDEX theirs_idx ON public.theirs (a)")
    django.sql("CREATE INDEX ours_idx ON outbox.retention_register (signature)")
    django.sql("CREATE INDEX hosts_idx ON {event} (name)")
    django.sql("UPDATE pg_index SET indisvalid = false WHERE indexrelid::regclass::text ~ 's_idx$'")
    drop = "DROP INDEX CONCURRENTLY IF EXISTS "
    assert django.sql(text, "theirs_idx") == []
    assert django.one(text, "ours_idx") == drop + "outbox.ours_idx"
    assert django.one(text, "hosts_idx") == drop + "public.hosts_idx"


@pytest.mark.parametrize("schema", ['We"ird.Schéma', "o'clock", "x" * 63, "é" * 31, "Select"])
def test_B80_any_schema_name(empty_db, schema):
    install_event(empty_db.dsn, event_schema=schema)
    quoted = quote_name(schema)
    outbox = Outbox(
        empty_db,
        f"{quoted}.event",
        f"{quoted}.delivery",
        f"{quoted}.receiver_last_success",
        quoted,
    )
    event = outbox.event("succeeded", "dead", age=OLD)
    kept = outbox.event("succeeded", age=OLD, window=2147483647)
    assert outbox.pruned() == {event}
    assert outbox.events() == {kept}
    outbox.sql("CALL {schema}.prune_events_v1(0, 10, NULL)")
    outbox.sql("SELECT {schema}.record_event_v1('e', '{}', '{a}')")


def test_B80_any_table_name(empty_db):
    make_django_tables(empty_db)
    names = {"event_table": 'Ev"ent', "delivery_table": "Deli.very", "success_table": "Suc'cess"}
    empty_db.sql('CREATE SCHEMA "Hö.st"')
    tables = {}
    for key, name in names.items():
        old = DJANGO_TABLES[key]
        tables[key] = f'"Hö.st".{quote_name(name)}'
        empty_db.sql(f'ALTER TABLE {old} SET SCHEMA "Hö.st"')
        old = old.split(".")[1]
        empty_db.sql(f'ALTER TABLE "Hö.st".{old} RENAME TO {quote_name(name)}')
    install_event(empty_db.dsn, **tables)
    outbox = Outbox(empty_db, **tables)
    event = outbox.event("succeeded", age=OLD)
    assert outbox.pruned() == {event}


def test_install_leaves_a_foreign_function_alone(event_db):
    event_db.sql(
        "CREATE OR REPLACE FUNCTION outbox.quiet_receivers_v1(p_older_than_seconds bigint,"
        " OUT receiver_key text, OUT last_succeeded_at timestamptz) RETURNS SETOF record"
        " LANGUAGE sql AS $$ SELECT 'theirs', now() $$"
    )
    install_event(event_db.dsn)
    assert event_db.one("SELECT receiver_key FROM outbox.quiet_receivers_v1(1)") == "theirs"


@pytest.mark.parametrize("tables", [{}, DJANGO_TABLES], ids=["own", "django"])
def test_L12_a_role_of_little_is_enough(cluster, empty_db, tables):
    role = 'ret"ention'
    cluster.admin(f"DROP ROLE IF EXISTS {quote_name(role)}")
    cluster.admin(f"CREATE ROLE {quote_name(role)} LOGIN")
    if tables:
        make_django_tables(empty_db)
    install_event(empty_db.dsn, grant_role=role, **tables)
    outbox = Outbox(empty_db, **tables)
    outbox.event("succeeded", "dead", age=OLD)
    outbox.event("succeeded", age=OLD, window=60)
    outbox.fan_out(outbox.event(policy="settled"), 20)
    with outbox.db.connect(user=role).cursor() as cursor:
        cursor.execute("SET default_transaction_isolation = 'read committed'")
        cursor.execute("CALL outbox.prune_events_v1(%s, 7, NULL)", (WINDOW,))
        cursor.execute("SELECT count(*) FROM outbox.quiet_receivers_v1(0)")
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            cursor.execute(outbox.named("SELECT payload FROM {event}"))
        with pytest.raises(
            psycopg2.errors.UndefinedFunction if tables else psycopg2.errors.InsufficientPrivilege
        ):
            cursor.execute("SELECT outbox.record_event_v1('e')")
    assert outbox.events() == set()
    empty_db.sql(f"DROP OWNED BY {quote_name(role)}")
    cluster.admin(f"DROP ROLE {quote_name(role)}")


def test_E1_what_row_security_hides_is_never_deleted(cluster, outbox):
    role = "half_blind"
    tables = DJANGO_TABLES if outbox.event_table.startswith("public.") else {}
    cluster.admin(f"DROP ROLE IF EXISTS {role}")
    cluster.admin(f"CREATE ROLE {role} LOGIN")
    install_event(outbox.db.dsn, grant_role=role, **tables)
    event = outbox.event("succeeded", "pending", age=OLD)
    outbox.sql("ALTER TABLE {delivery} ENABLE ROW LEVEL SECURITY")
    outbox.sql("CREATE POLICY half ON {delivery} USING (status = 'succeeded')")
    with outbox.db.connect(user=role).cursor() as cursor:
        for arm in ARMS:
            with pytest.raises(psycopg2.errors.InsufficientPrivilege, match="row-level security"):
                cursor.execute("SELECT outbox.event_prune_step_v1(%s, now(), %s, 7)", (arm, WINDOW))
    assert outbox.events() == {event} and outbox.deliveries() == 2
    outbox.sql(f"DROP OWNED BY {role}")
    cluster.admin(f"DROP ROLE {role}")


def test_E1_every_function_of_the_prune_that_reads_rows_sees_all_of_them(outbox):
    tables = (outbox.event_table, outbox.delivery_table, outbox.success_table)
    names = "|".join(table.split(".")[1] for table in tables)
    readers = outbox.sql(
        "SELECT p.proname, 'row_security=off' = ANY (p.proconfig) FROM pg_proc AS p"
        " WHERE p.pronamespace = 'outbox'::regnamespace AND p.proname ~ '^(event_)?prune_'"
        " AND p.prosrc ~ %s",
        rf"\.({names})\M",
    )
    assert len(readers) == 16
    assert [name for name, sees_all in readers if not sees_all] == []


def test_B78_nothing_is_for_everybody(event_db):
    assert (
        event_db.sql(
            "SELECT p.oid::regprocedure FROM pg_proc AS p"
            " WHERE p.pronamespace = 'outbox'::regnamespace"
            " AND (p.prosecdef OR has_function_privilege('public', p.oid, 'EXECUTE'))"
        )
        == []
    )


def test_L12_every_function_pins_its_path(event_db):
    """But two, which are no calls where they are used; and name everything by its schema."""
    calls = {
        "event_prune_terminal_v1": "e.name",
        "event_prune_due_v1": "e.name, now(), now(), e.recorded_at, e.retention_seconds,"
        " e.delete_when",
    }
    free = event_db.sql(
        "SELECT p.proname FROM pg_proc AS p"
        " WHERE p.pronamespace = 'outbox'::regnamespace AND p.prokind = 'f'"
        " AND NOT 'search_path=pg_catalog, pg_temp' = ANY (COALESCE(p.proconfig, '{}'))"
    )
    assert {row[0] for row in free} == set(calls)
    for name, arguments in calls.items():
        plan = event_db.sql(
            f"EXPLAIN VERBOSE SELECT outbox.{name}({arguments}) FROM outbox.event AS e"
        )
        assert len(plan) == 2 and "CASE" in plan[1][0] and name not in plan[1][0]


def test_B77_what_pins_no_path_needs_none(own):
    own.sql("CREATE SCHEMA evil")
    for kind, names in (("text", "="), ("timestamptz", "< >="), ("bigint", ">")):
        own.sql(
            f"CREATE FUNCTION evil.never({kind}, {kind}) RETURNS boolean LANGUAGE sql"
            " AS $$ SELECT NULL::boolean $$"
        )
        for name in names.split():
            own.sql(
                f"CREATE OPERATOR evil.{name} (LEFTARG = {kind}, RIGHTARG = {kind},"
                " FUNCTION = evil.never)"
            )
    text = (
        "SELECT outbox.event_prune_terminal_v1(arm), outbox.event_prune_due_v1(arm, %s, %s,"
        " recorded, seconds, policy) FROM unnest(%s::text[]) AS a (arm),"
        " (VALUES ('2026-01-01'::timestamptz, 60::bigint, ''), ('2026-01-01', NULL, 'succeeded'),"
        " ('infinity', NULL, 'settled'), (NULL, 60, 'settled')) AS e (recorded, seconds, policy)"
    )
    arguments = (own.now, own.now, list(ARMS))
    answers = own.sql(text, *arguments)
    assert len(answers) == 16 and {due for _, due in answers} == {True, False, None}
    own.sql("SET search_path = evil, pg_catalog")
    assert own.sql(text, *arguments) == answers


def test_B77_no_function_depends_on_how_strings_are_read(event_db):
    assert (
        event_db.sql(
            "SELECT p.oid::regprocedure FROM pg_proc AS p"
            " WHERE p.pronamespace = 'outbox'::regnamespace AND strpos(p.prosrc, chr(92)) > 0"
            " AND NOT 'standard_conforming_strings=on' = ANY (COALESCE(p.proconfig, '{}'))"
        )
        == []
    )


def test_B77_steps_where_strings_are_read_as_they_once_were(outbox):
    locked, *free = (outbox.event("succeeded", age=OLD - n) for n in range(5))
    outbox.sql("SET standard_conforming_strings = off")
    outbox.sql("SET escape_string_warning = off")
    with outbox.db.connect(autocommit=False).cursor() as other:
        other.execute(outbox.named("SELECT FROM {event} WHERE id = %s FOR UPDATE"), (locked,))
        outbox.drain("default_window", rows=1)
        other.connection.rollback()
    assert outbox.events() == {locked} and free


def test_B77_steps_under_a_hostile_search_path(outbox):
    event = outbox.event("succeeded", age=OLD)
    owed = outbox.event("pending", age=OLD)
    outbox.sql("CREATE SCHEMA evil")
    for name, types in (("now", ""), ("count", '"any"'), ("to_char", "timestamp, text")):
        if name != "count":
            outbox.sql(
                f"CREATE FUNCTION evil.{name}({types}) RETURNS text LANGUAGE sql"
                " AS $$ SELECT 'x' $$"
            )
    outbox.sql(
        "CREATE FUNCTION evil.never(text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$"
    )
    outbox.sql("CREATE OPERATOR evil.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.never)")
    outbox.sql("SET search_path = evil, pg_catalog")
    outbox.sql("CREATE TEMP TABLE event (id bigint)")
    for arm in ARMS:
        outbox.drain(arm)
    assert outbox.events() == {owed}
    assert event not in outbox.events()


def test_B13_install_beside_writers(outbox):
    writer = outbox.db.connect(autocommit=False)
    with writer.cursor() as cursor:
        cursor.execute(outbox.named("SELECT count(*) FROM {event}"))
        tables = DJANGO_TABLES if outbox.event_table.startswith("public.") else {}
        install_event(outbox.db.dsn, **tables)
    writer.rollback()
