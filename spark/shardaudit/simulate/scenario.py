"""What is to be simulated: a stream's size, its time, and which faults it gets."""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from shardaudit.model.config.choices import NAME_PATTERN
from shardaudit.model.errors import ConfigError
from shardaudit.model.retention import MAX_RETENTION
from shardaudit.model.window import Window

DEFAULT_MESSAGES = 200_000
MIN_RETENTION_HOURS, MAX_RETENTION_HOURS = 24, MAX_RETENTION // timedelta(hours=1)  # Kinesis API
# The audit looks when everything has settled; that much of the window has expired by then.
AFTER_RETENTION = timedelta(minutes=30)
# Late arrivals stay under it, so that a shard's p99 latency remains one of seconds.
MAX_LATE_SHARE = 0.005

# Faults that strike single messages: how many by default in 200,000 messages.
MESSAGE_FAULTS: Mapping[str, tuple[int, str]] = {
    "lost": (40, "read by the consumer and never landed"),
    "expired": (10, "lost, and by now gone from the stream too"),
    "replay": (30, "landed twice: the consumer read it again"),
    "retry": (20, "put twice, as the first answer was lost; both landed"),
    "late": (50, "landed an hour late: nothing is wrong with it"),
    "untraced": (25, "landed, its trace was lost"),
    "moved": (12, "landed under a child shard's id; needs reshard"),
    "cancel": (15, "pairs: one lost and one doubled in the same minute of a shard"),
}
# Faults that strike whole shards: how many shards (reshard: 1 splits one and merges two).
SHARD_FAULTS: Mapping[str, tuple[int, str]] = {
    "silent_shard": (1, "produces and nothing of it ever lands"),
    "stuck_shard": (1, "its consumer stops while the producer goes on"),
    "reshard": (1, "in the middle one shard is split and two are merged"),
}
FAULTS = {**MESSAGE_FAULTS, **SHARD_FAULTS}


@dataclass(frozen=True, slots=True)
class Scenario:
    """A simulation: the same values give the same messages and the same faults."""

    stream: str
    seed: int
    messages: int
    shards: int
    start: datetime
    hours: int
    faults: Mapping[str, int]

    def __post_init__(self) -> None:
        limits = {
            "--messages": (self.messages, 100, 10**9),
            "--shards": (self.shards, 1, 10_000),
            "--hours": (self.hours, 1, MAX_RETENTION_HOURS),
            "--seed": (self.seed, 0, 2**63 - 1),
        }
        for name, (value, least, most) in limits.items():
            if not least <= value <= most:
                raise ConfigError(name, value, f"a whole number from {least} to {most}")
        if re.fullmatch(NAME_PATTERN, self.stream) is None:
            raise ConfigError("--stream", self.stream, "1 to 128 letters, digits, or _ . -")
        if self.start.timestamp() % 60:
            raise ConfigError("--start", self.start.isoformat(), "a whole minute")
        for fault, count in self.faults.items():
            if fault not in FAULTS or count < 0:
                raise ConfigError("--fault", f"{fault}={count}", f"one of {', '.join(FAULTS)}")
        self._check_together()

    def _check_together(self) -> None:
        if self.count("late") > self.messages * MAX_LATE_SHARE:
            most = int(self.messages * MAX_LATE_SHARE)
            raise ConfigError("--fault late", self.count("late"), f"at most {most}: 0.5 %")
        if self.count("reshard") > 1:
            raise ConfigError("--fault reshard", self.count("reshard"), "0 or 1")
        if self.count("moved") and not self.count("reshard"):
            raise ConfigError("--fault moved", self.count("moved"), "0, or reshard=1 beside it")
        special = self.count("silent_shard") + self.count("stuck_shard") + 3 * self.count("reshard")
        if special >= self.shards:
            raise ConfigError("--shards", self.shards, f"at least {special + 1} for these faults")

    def count(self, fault: str) -> int:
        """How many of this fault."""
        return self.faults.get(fault, 0)

    @property
    def window(self) -> Window:
        """When the messages are sent."""
        return Window(self.start, self.start + timedelta(hours=self.hours))

    @property
    def retention(self) -> timedelta:
        """How long the stream keeps them: the whole window, and a day at least."""
        return timedelta(hours=max(MIN_RETENTION_HOURS, self.hours))

    @property
    def as_of(self) -> datetime:
        """When the audit looks: all has settled, and the oldest messages have just expired."""
        return self.start + self.retention + AFTER_RETENTION

    @property
    def start_ms(self) -> int:
        """The window's start in milliseconds."""
        return int(self.window.start.timestamp() * 1000)

    @property
    def end_ms(self) -> int:
        """The window's end in milliseconds."""
        return int(self.window.end.timestamp() * 1000)

    @property
    def as_of_ms(self) -> int:
        """The audit's time in milliseconds."""
        return int(self.as_of.timestamp() * 1000)

    @property
    def horizon_ms(self) -> int:
        """What came into the stream before it has left it at `as_of`."""
        return int((self.as_of - self.retention).timestamp() * 1000)


def default_faults(messages: int) -> dict[str, int]:
    """Every fault: those of single messages in proportion to how many there are."""
    scaled = {
        fault: max(1, round(count * messages / DEFAULT_MESSAGES))
        for fault, (count, _) in MESSAGE_FAULTS.items()
    }
    return scaled | {fault: count for fault, (count, _) in SHARD_FAULTS.items()}


@dataclass(frozen=True, slots=True)
class Roles:
    """Which shards (by their number) have a part to play, and from which message on."""

    silent: tuple[int, ...]
    stuck: Mapping[int, int]  # shard -> the first message that its consumer does not read
    split: int | None
    merged: tuple[int, int] | None
    reshard_at: int  # the first message after it

    def __post_init__(self) -> None:
        if (self.split is None) != (self.merged is None):
            raise ConfigError("reshard", self.split, "a split and a merge, or neither")


def roles(scenario: Scenario) -> Roles:
    """The parts, drawn by the seed."""
    draw = random.Random(scenario.seed)  # noqa: S311 - to be repeated, not to be secret
    plain = list(range(scenario.shards))
    split, merged = None, None
    if scenario.count("reshard"):
        *plain, split, first, second = plain
        merged = (first, second)
    silent = sorted(draw.sample(plain, scenario.count("silent_shard")))
    others = [shard for shard in plain if shard not in silent]
    stuck = sorted(draw.sample(others, scenario.count("stuck_shard")))
    # One after the other, from 70 % of the messages on.
    step = scenario.messages // (5 * len(stuck)) if stuck else 0
    stops = {shard: scenario.messages * 7 // 10 + step * nth for nth, shard in enumerate(stuck)}
    return Roles(tuple(silent), stops, split, merged, scenario.messages // 2)
