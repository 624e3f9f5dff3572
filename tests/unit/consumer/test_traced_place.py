"""A place between the producer and the sink: what it received and sent on, a line each."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any  # of records and arguments

import pytest

from shardaudit.consumer import TracedPlace, trace
from shardaudit.consumer.traced_place import NO_LIST, NO_NUMBER, NO_SHARD_ID
from shardaudit.model.errors import ConfigError
from shardaudit.model.input_columns import CANARY
from shardaudit.producer.sample import is_sampled
from tests.unit.consumer.received import SENT_AT, SHARD, record
from tests.unit.producer.puts import health, logged


def traced_place(folder: Path, **arguments: Any) -> TracedPlace:
    given = {"stream": "events", "location": "router", "producer_id": "router-1"}
    return trace(str(folder), **(given | arguments))


def test_what_a_place_received_and_sent_on_is_a_line_each(tmp_path: Path) -> None:
    with traced_place(tmp_path) as place:
        place.received([record(0), record(1)])
        place.sent([record(1)])
        place.left_out([record(0)])
        place.received([])
        assert place.flush()
        assert place.stats[:3] == (4, 0, 0)
    first, *_ = lines = logged(tmp_path)
    told = [(line["message_id"], line["event"], line["session_seq"]) for line in lines]
    assert told[:2] == [("m0", "received", 0), ("m1", "received", 1)]
    assert told[2:] == [("m1", "sent", 2), ("m0", "left_out", 3)]
    assert first.pop("session")
    assert first.pop("acked_at").endswith("Z")
    assert first == {
        "message_id": "m0",
        "stream": "events",
        "shard_id": SHARD,
        "sequence_number": "0",
        "sent_at": SENT_AT,
        "event": "received",
        "session_seq": 0,
        "producer_id": "router-1",
        "location": "router",
        "sample_rate": 1.0,
    }


def test_health_and_gaps_say_of_which_place_they_are(tmp_path: Path) -> None:
    with traced_place(tmp_path) as place:
        place.received([record(0, Data=b"no json")])
    assert [line["location"] for line in (*logged(tmp_path), *health(tmp_path))] == ["router"] * 2


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (record(0, Data=b"no json"), "the payload is no JSON object"),
        (record(0, Data=b'{"message_id": "m0"}'), "sent_at is missing, or no time with a zone"),
        (record(0, Data=b'{"sent_at": 1}'), "the message id is missing, or no text"),
        ({"ShardId": SHARD}, "the record could not be read: KeyError"),
        (None, "the record could not be read: TypeError"),
        (record(0, ShardId=None), NO_SHARD_ID),
        (record(0, ShardId=""), NO_SHARD_ID),
        *((record(0, ShardId=odd), NO_SHARD_ID) for odd in ("s" * 129, "\ud800", f"{CANARY}0")),
        (record(0, SequenceNumber=17), NO_NUMBER),
        *((record(0, SequenceNumber=odd), NO_NUMBER) for odd in ("4-7", "007", "1\n", "1" * 130)),
        (record(0, SequenceNumber=""), NO_NUMBER),
        ({"Data": record(0)["Data"]}, NO_SHARD_ID),
    ],
)
def test_record_is_a_gap_when_it_cannot_be_traced(odd: Any, reason: str, tmp_path: Path) -> None:
    with traced_place(tmp_path) as place:
        place.received([odd, record(1)])
        assert place.flush()
        assert place.stats[:3] == (1, 1, 0)
    line, gap = logged(tmp_path)
    assert (gap["gap"], gap["reason"], line["message_id"]) == (1, reason, "m1")


def test_record_is_a_gap_when_functions_take_what_is_no_record(tmp_path: Path) -> None:
    with traced_place(tmp_path, message_id=str, sent_at=lambda _: SENT_AT) as place:
        place.received([17])  # type: ignore[list-item] # the fault
    assert [line["reason"] for line in logged(tmp_path)] == [NO_SHARD_ID]


@pytest.mark.parametrize("odd", [None, 7, record(0), (record(n) for n in range(2))])
def test_records_are_a_gap_when_they_are_no_list(odd: Any, tmp_path: Path) -> None:
    with traced_place(tmp_path) as place:
        place.sent(odd)
        assert place.stats.dropped == 1
    assert [line["reason"] for line in logged(tmp_path)] == [NO_LIST]


def test_records_are_a_gap_when_their_list_cannot_be_read(tmp_path: Path) -> None:
    class Torn(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            raise ConnectionError

    with traced_place(tmp_path) as place:
        place.received(Torn())
    [gap] = logged(tmp_path)
    assert gap["reason"] == "the records could not be read: ConnectionError"


def test_ids_and_times_are_taken_from_where_the_caller_says(tmp_path: Path) -> None:
    given = record(0, Data='{"meta": {"id": 7}}', At=1795183200000)
    before = dict(given)
    with traced_place(tmp_path, message_id="meta.id", sent_at=lambda r: r["At"]) as place:
        place.received([given])
    [line] = logged(tmp_path)
    assert (line["message_id"], line["sent_at"], given) == ("7", 1795183200000, before)


def test_sample_is_that_of_the_producers(tmp_path: Path) -> None:
    with traced_place(tmp_path, sample_rate=0.1) as place:
        place.received([record(n) for n in range(400)])
        place.received([record(n, ShardId="") for n in range(400)])
    expected = [f"m{n}" for n in range(400) if is_sampled(f"m{n}", 0.1)]
    *lines, gap = logged(tmp_path)
    assert [line["message_id"] for line in lines] == expected
    assert (gap["gap"], gap["session_seq"]) == (len(expected), len(expected))


def test_place_goes_on_when_the_log_cannot_be_written_or_is_closed(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    place = traced_place(fifo / "no folder")
    place._log._limits = place._log._limits.__class__(patience_s=0.05)  # noqa: SLF001 - not ten seconds
    place.received([record(0)])
    place.close()
    place.close()
    place.sent([record(0)])
    assert place.stats == (0, 2, 0, 0)


@pytest.mark.parametrize(
    "arguments",
    [
        *(
            {name: odd}
            for name in ("stream", "location", "producer_id")
            for odd in ("", 7, "\udcfc")
        ),
        {"location": "producer"},
        {"location": "sink"},
        {"sample_rate": 0},
        {"message_id": 7},
        {"sent_at": ""},
    ],
)
def test_arguments_are_refused_when_no_log_can_come_of_them(
    arguments: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=rf"trace\(\): {next(iter(arguments))}"):
        traced_place(tmp_path, **arguments)
