"""The model test can fail: it catches each of these small faults put into the SQL functions."""

import psycopg2
import pytest

from model import cycles
from model.world import Mismatch, World

MOST_SEEDS = 120

# a seed that shows it, where, what stands there, what a fault would make of it
MUTATIONS = {
    "rule_1_takes_equality": (
        4,
        "log_retention_step_v1",
        "v_segment.created_at < p_all_cutoff",
        "v_segment.created_at <= p_all_cutoff",
    ),
    "rule_2_takes_equality": (
        9,
        "log_retention_step_v1",
        "v_segment.created_at < p_completed_cutoff",
        "v_segment.created_at <= p_completed_cutoff",
    ),
    "rule_2_cap_off_by_one": (
        28,
        "log_retention_step_v1",
        "v_segment.end_offset <= v_consumed",
        "v_segment.end_offset <= v_consumed + 1",
    ),
    "rule_2_follows_the_fastest": (2, "log_retention_step_v1", "min(COALESCE(", "max(COALESCE("),
    "rule_1_skips_fresh_rows": (
        3,
        "log_retention_step_v1",
        "v_stale := v_stale AND v_in_stale",
        "v_stale := v_stale",
    ),
    "watermark_on_the_last_offset": (
        1,
        "log_retention_step_v1",
        "v_segment.end_offset + 1",
        "v_segment.end_offset",
    ),
    "done_without_looking": (4, "log_retention_step_v1", "LIMIT v_limit + 1", "LIMIT v_limit"),
    "batch_one_too_many": (4, "log_retention_step_v1", "v_count = v_limit", "v_count > v_limit"),
    "history_names_swapped": (
        1,
        "log_retention_step_v1",
        "WHEN v_past_stale THEN",
        "WHEN NOT v_past_stale THEN",
    ),
    "history_overflows": (1, "log_retention_step_v1", ", 2147483647)", ", 9147483647)"),
    "sidecar_takes_equality": (
        6,
        "log_txns_purge_step_v1",
        "v_row.created_at < p_cutoff",
        "v_row.created_at <= p_cutoff",
    ),
    "eviction_without_its_name": (
        3,
        "log_evict_max_wait_step_v1",
        "max_wait_time_eviction",
        "retention",
    ),
    "cleanup_takes_equality": (
        40,
        "log_partition_dead_v1 retention_cleanup_lock_v1",
        "p.created_at < p_cutoff AND p.last_write_at < p_cutoff",
        "p.created_at <= p_cutoff AND p.last_write_at <= p_cutoff",
    ),
    "cleanup_forgets_dead_letters": (
        13,
        "log_partition_dead_v1 retention_cleanup_lock_v1",
        "d.partition_id = p.id",
        "false",
    ),
    "cleanup_forgets_streams": (
        41,
        "log_partition_dead_v1 retention_cleanup_lock_v1",
        '"queen".retention_streams_state_v1(p.id, false) IS NOT NULL',
        "false",
    ),
    "cleanup_forgets_recent_groups": (
        1,
        "log_partition_dead_v1 retention_cleanup_lock_v1",
        "c.created_at >= p_cutoff",
        "false",
    ),
    "cleanup_leaves_the_sidecar": (
        34,
        "retention_cleanup_remove_v1",
        "WHERE t.partition_id = p_ids[gone]",
        "WHERE false",
    ),
}


def mutate(db, functions, old, new):
    for function in functions.split():
        source = db.one(
            "SELECT pg_get_functiondef(oid) FROM pg_proc"
            " WHERE proname = %s AND pronamespace = 'queen'::regnamespace",
            function,
        )
        assert source and old in source, f"{function} no longer holds: {old}"
        db.sql(source.replace(old, new))


def is_caught(cluster, seed, mutation):
    """Whether a life on mutated functions fails."""
    db = cluster.create_database(("broker", "log"))
    try:
        mutate(db, *mutation)
        world = World(db, seed)
        for _ in range(3):
            world.live(world.random.randint(10, 40))
            cycles.sql_v1(world)
    except (Mismatch, psycopg2.Error):
        return True
    finally:
        cluster.close_connections()
        db.drop()
    return False


@pytest.mark.parametrize("name", MUTATIONS)
def test_model_catches(cluster, name):
    """The seed in the table saves time; another one will do when the lives have changed."""
    first, *mutation = MUTATIONS[name]
    seeds = [first, *range(1, MOST_SEEDS)]
    assert any(is_caught(cluster, seed, mutation) for seed in seeds)
