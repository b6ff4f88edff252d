"""What a recorded exchange holds: which bytes belong to which statement of a cycle."""

import collections
import struct

from .proxy import DOWN, UP

# A statement of the library is known by the first of these words that it holds.
WORDS = (
    ("SELECT true", "renewal"),
    ("proname", "facts"),
    ("set_config", "settings"),
    ("retention_schema", "version"),
    ("pg_try_advisory_lock", "gate"),
    ("retention_lease_claim_v1", "gate"),
    ("retention_lease_barrier_v1", "gate"),
    ("pg_advisory_unlock", "release"),
    ("retention_lease_release_v1", "release"),
    ("retention_lease_renew_v1", "renewal"),
    ("log_retention_", "step"),
    ("log_txns_purge_", "step"),
    ("log_evict_max_wait_step", "step"),
    ("log_partition_cleanup_step", "partition_cleanup"),
    ("ctid", "metrics_purge"),
    ("event_prune_", "event_prune"),
    ("log_partitions", "page"),
    ("retention_floors_due_v1", "page"),
    ("retention_floors", "floors"),
)

Group = collections.namedtuple("Group", "kind up_start up_end down_start down_end")


def messages(data, at=0):
    """(type, start, end) of every whole message from there on."""
    while at + 5 <= len(data):
        end = at + 1 + struct.unpack_from("!I", data, at + 1)[0]
        if end > len(data):
            return
        yield data[at : at + 1], at, end
        at = end


ENVELOPE = (b"BEGIN ISOLATION", b"COMMIT", b"SET ")


def kind_of(statement):
    """None for what only goes around another statement."""
    if statement.startswith(ENVELOPE) or b"retention_fence_v1" in statement:
        return None
    for word, kind in WORDS:
        if word.encode() in statement:
            return kind
    raise ValueError(f"a statement of no known kind: {statement[:200]!r}")


def statements(up):
    """(kind, start, end) of every statement, whole or not, up to its sync point."""
    start = struct.unpack_from("!I", up, 0)[0]
    kind, prepared, found = None, {}, []
    for tag, at, end in messages(up, start):
        body = up[at + 5 : end]
        if tag == b"P":
            name, text = body.split(b"\0")[:2]
            prepared[name] = kind_of(text)
        elif tag == b"B":
            kind = prepared[body.split(b"\0")[1]] or kind
        elif tag == b"S":
            found.append((kind, start, end))
            start = end
    return found


def groups(up, down):
    """The exchange in order: the startup, then one group a sync point, last what ends it."""
    sent = statements(up)
    answers = [end for kind, _, end in messages(down) if kind == b"Z"]
    startup_end = sent[0][1]
    found = [Group("startup", 0, startup_end, 0, answers[0])]
    for number, (kind, start, end) in enumerate(sent, 1):
        found.append(Group(kind, start, end, answers[number - 1], answers[number]))
    last = found[-1]
    found.append(Group("end", last.up_end, len(up), last.down_end, len(down)))
    return found


METRICS_TABLES = 5


def awaited(up, down):
    """What the library waited for, or was about to send, when no more than that had passed."""
    answers = sum(tag == b"Z" for tag, *_ in messages(down))
    if answers == 0:
        return "startup"
    kinds = [kind for kind, *_ in statements(up)]
    if answers <= len(kinds):
        return kinds[answers - 1]
    if not kinds:
        return "settings"
    if kinds[-1] == "release":
        return "end"
    # Which comes next is not told, but only one of them counts for another class.
    return "release" if kinds.count("metrics_purge") == METRICS_TABLES else kinds[-1]


def kind_at(found, direction, offset):
    """The statement that a cut after so many bytes of that direction leaves without an answer."""
    for group in found:
        if direction == UP and offset <= group.up_end:
            return group.kind
        if direction == DOWN and offset < group.down_end:
            return group.kind
    return "end"


def edges(found, direction):
    """Offsets at which something begins or ends, with those beside them."""
    marks = set()
    for group in found:
        start, end = (
            (group.up_start, group.up_end)
            if direction == UP
            else (group.down_start, group.down_end)
        )
        marks.update((start - 1, start, start + 1, end - 1, end, end + 1))
    return sorted(mark for mark in marks if mark >= 0)
