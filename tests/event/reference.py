"""A slow, obviously right outbox: lists, loops, whole microseconds, and nothing of ours."""

from dataclasses import dataclass, field

SECOND = 1_000_000
TERMINAL = {"succeeded", "dead", "orphaned", "cancelled"}
CONSUMED = {"succeeded", "cancelled"}


@dataclass
class Delivery:
    receiver: str
    status: str
    succeeded: int | None = None


@dataclass
class Event:
    recorded: int
    window: int | None = None
    policy: str = ""
    deliveries: list[Delivery] = field(default_factory=list)

    def all_in(self, statuses):
        return all(delivery.status in statuses for delivery in self.deliveries)


class Reference:
    """Events by id, and the newest pruned success of each receiver."""

    def __init__(self):
        self.events = {}
        self.last_success = {}

    def arm(self, event, now, default):
        """The arm that takes an event, or None."""
        if event.policy == "succeeded" and event.all_in(CONSUMED):
            return "succeeded"
        if event.policy == "settled" and event.all_in(TERMINAL):
            return "settled"
        if not event.all_in(TERMINAL):
            return None
        if event.window is not None:
            return "own_window" if event.recorded + event.window * SECOND < now else None
        return "default_window" if event.recorded + default * SECOND < now else None

    def prune(self, now, default):
        """Deletes what is due. Returns how many events each arm took."""
        taken = {"succeeded": 0, "settled": 0, "own_window": 0, "default_window": 0}
        for key, event in list(self.events.items()):
            arm = self.arm(event, now, default)
            if arm is None:
                continue
            taken[arm] += 1
            for delivery in event.deliveries:
                if delivery.succeeded is not None:
                    newest = self.last_success.get(delivery.receiver, delivery.succeeded)
                    self.last_success[delivery.receiver] = max(newest, delivery.succeeded)
            del self.events[key]
        return taken
