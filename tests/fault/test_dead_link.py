"""B08 below TCP: a link between network namespaces goes down; keepalives end the wait."""

import os
import shutil
import subprocess
import time

import pytest

from cycle import support
from fault import hosts, worlds
from pg import bulk, qret
from pg.cluster import Cluster

IDLE_LIMIT = 3
MARGIN = 5


def ip(*words):
    return subprocess.run(
        ["ip", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )


class Link:
    """A namespace and a pair of interfaces; our end has .1, the other .2."""

    def __init__(self):
        number = os.getpid() % 250
        self.name, self.ours, self.theirs = f"qret{number}", f"qret{number}a", f"qret{number}b"
        self.address = f"10.213.{number}."

    def __enter__(self):
        inside = ("-n", self.name)
        steps = (
            ("netns", "add", self.name),
            (
                "link",
                "add",
                self.ours,
                "type",
                "veth",
                "peer",
                "name",
                self.theirs,
                "netns",
                self.name,
            ),
            ("addr", "add", self.address + "1/24", "dev", self.ours),
            ("link", "set", self.ours, "up"),
            (*inside, "addr", "add", self.address + "2/24", "dev", self.theirs),
            (*inside, "link", "set", self.theirs, "up"),
        )
        for step in steps:
            done = ip(*step)
            if done.returncode != 0:
                self.__exit__()
                pytest.skip(f"no network namespaces here: {done.stdout}")
        return self

    def __exit__(self, *exc):
        ip("link", "del", self.ours)
        ip("netns", "del", self.name)

    def down(self):
        ip("link", "set", self.ours, "down")

    def up(self):
        ip("link", "set", self.ours, "up")


@pytest.fixture
def link():
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    with Link() as between:
        yield between


@pytest.fixture
def remote(link):
    """A cluster that the namespace can reach."""
    cluster = Cluster(settings={"listen_addresses": "*"}, tcp=True, start=False)
    with cluster:
        with open(os.path.join(cluster.data, "pg_hba.conf"), "a", encoding="ascii") as rules:
            rules.write(f"host all all {link.address}0/24 trust\n")
        cluster.start()
        yield cluster


@pytest.mark.parametrize("limited", [True, False], ids=["statement limit", "keepalives alone"])
def test_link_goes_down_in_mid_step(link, remote, limited):
    """The host's call returns, the server frees the gate, and both within the idle limit."""
    db = remote.create_database(("broker", "log"))
    _, ids = bulk.backlog(db, 3, 4)
    support.fail_deletes_of(db, ids[0], "PERFORM pg_sleep(60)")
    dsn = (
        f"host={link.address}1 port={remote.port} dbname={db.name} user=postgres gssencmode=disable"
    )
    options = {
        "idle_limit_ms": 1000 * IDLE_LIMIT,
        "statement_timeout_ms": 1000 if limited else 0,
        "interval_ms": 500,
        "connect_timeout_ms": 1000,
        "batch_size": 1,
        "gate_key": 737001,
    }
    prefix = ("ip", "netns", "exec", link.name)
    with hosts.Host(dsn, seconds=60, prefix=prefix, **options) as host:
        host.wait_for(lambda line: "begin" in line)
        sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
        assert support.eventually(lambda: db.one(sleeping), 20)
        link.down()
        cut = time.monotonic()
        line = host.wait_for(lambda each: "end" in each)
        assert line["code"] in (
            ("ERR_TIMEOUT", "ERR_CONNECTION") if limited else ("ERR_CONNECTION",)
        )
        assert time.monotonic() - cut < IDLE_LIMIT + 1 + MARGIN
        assert support.eventually(lambda: not support.advisory_locks(db), 2 * IDLE_LIMIT + MARGIN)
        db.sql("DROP TRIGGER refuse ON queen.log_segments")
        with qret.Context(db.dsn, **options) as healer:
            worlds.heal(healer)
        bulk.segments(db, ids, 2, 3600)
        link.up()
        # The same host comes back by itself.
        host.wait_for(lambda each: each.get("code") == "DONE", 30)
        assert support.eventually(lambda: bulk.count(db) == 0)
    assert worlds.audited(db) == 18
