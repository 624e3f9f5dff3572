"""Random messages on routes with filters, against what was planted: in plain Python."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import pytest

from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.verdict import Verdict
from tests.builders import Line, shard, sink_row, trace_line
from tests.spark.audit.on_routes import audited, passed, sighting
from tests.spark.lake import Lake

# What leads to a place, its share, and which part it passes on.
Places = dict[str, tuple[tuple[str, ...], float | str, float]]
ROUTES: dict[str, Places] = {
    "behind branches that meet, with another behind it": {
        "eu": (("producer",), 0.5, 1.0),
        "us": (("producer",), 0.5, 1.0),
        "valid": (("eu", "us"), 0.6, 0.7),
        "wanted": (("valid",), 0.7, 0.8),
        "writer": (("wanted",), 1.0, 1.0),
    },
    "on one of two branches": {
        "router": (("producer",), 1.0, 1.0),
        "eu": (("router",), 0.5, 1.0),
        "us": (("router",), 0.5, 1.0),
        "valid": (("us",), 0.6, 0.75),
        "writer": (("eu", "valid"), 1.0, 1.0),
    },
    "told at one of two branches, and behind both": {
        "router": (("producer",), 1.0, 1.0),
        "eu": (("router",), 0.5, 1.0),
        "us": (("router",), "traced", 0.5),
        "wanted": (("eu", "us"), "traced", 0.3),
        "writer": (("wanted",), 1.0, 1.0),
    },
    "told at one of two filters": {
        "valid": (("producer",), 0.6, 0.7),
        "wanted": (("valid",), "traced", 0.5),
    },
}
SENT, LOST = 480, 0.05  # messages; of each hop


@dataclass
class Fates:
    """What becomes of messages, and what is traced of them."""

    places: Places
    random: Random
    lines: list[Line] = field(default_factory=list)
    rows: list[Line] = field(default_factory=list)
    lost: dict[str, str] = field(default_factory=dict)  # before which place
    left_out: set[str] = field(default_factory=set)

    def send(self, number: int) -> None:
        """Sends one message along the route."""
        home = {"shard_id": shard(number % 2)}
        self.lines.append(trace_line(number, **home))
        for place in self._way():
            if self.random.random() < LOST:
                self.lost[f"m{number}"] = place
                return
            if self.random.random() >= self.places[place][2]:
                self.left_out.add(f"m{number}")
                self.lines.append(sighting(number, place, "received"))
                if self.places[place][1] == "traced":
                    self.lines.append(sighting(number, place, "left_out"))
                return
            self.lines += passed(number, (place,))
        if self.random.random() < LOST:
            self.lost[f"m{number}"] = "sink"
            return
        self.rows.append(sink_row(number, **home))

    def _way(self) -> Iterator[str]:
        at = "producer"
        while following := [name for name, (after, *_) in self.places.items() if at in after]:
            at = self.random.choice(following)
            yield at


@pytest.mark.parametrize("name", ROUTES)
def test_what_was_lost_is_missing_and_what_was_left_out_is_not(lake: Lake, name: str) -> None:
    fates = Fates(ROUTES[name], Random(name))  # noqa: S311 - to be repeated
    for number in range(SENT):
        fates.send(number)
    lake.settings = {
        "locations": {
            place: {"after": list(after), "share": share}
            for place, (after, share, _) in fates.places.items()
        }
    }
    lake.log("all.jsonl", fates.lines)
    lake.land(fates.rows)
    lake.ingest()
    report = audited(lake)
    missing = [row for row in lake.rows(FINDINGS) if row.kind == "missing"]
    assert {row.message_id for row in missing} == fates.lost.keys()
    for row in missing:
        # Where several lead on nobody knows to which.
        assert row.location in {fates.lost[row.message_id], None}
    assert report.counts["filtered"] == len(fates.left_out)
    assert report.counts["matched"] == len(fates.rows)
    # What is lost at the very end, with nothing landed behind it, is stuck.
    assert report.verdict in {Verdict.LOSS, Verdict.STALLED}
