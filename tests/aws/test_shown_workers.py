"""The examples of docs/producers.md and docs/consumers.md, as they stand there, on the stand-in."""

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any  # of what an example defines

import pytest

from shardaudit.producer import traced
from shardaudit.simulate.kinesis_stream import endpoint_client
from shardaudit.simulate.stand_in_process import kinesis_stand_in
from tests.aws.streams import Stream
from tests.unit.producer.pages import CONSUMERS, PRODUCERS, example
from tests.unit.producer.puts import logged, records
from tests.unit.simulate.kinesis import name

pytestmark = pytest.mark.aws

SHARDS = (name(0), name(1))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with kinesis_stand_in() as url:
        yield url


def stream_of(address: str, called: str) -> Stream:
    stream = Stream(endpoint_client(address), called)
    stream.make(2)
    return stream


def read(stream: Stream, shard: str, after: str | None = None) -> list[Any]:
    """What is on a shard, behind a sequence number."""
    place = {"StartingSequenceNumber": after} if after else {}
    kind = "AFTER_SEQUENCE_NUMBER" if after else "TRIM_HORIZON"
    return stream.get(stream.iterator(kind, shard, **place))["Records"]


def test_asyncio_example_traces_all_that_is_on_the_stream(address: str, tmp_path: Path) -> None:
    events = stream_of(address, "events")
    batches = [records(50, first=50 * number) for number in range(6)]
    names = {"kinesis": events.client, "batches": batches}
    exec(example(PRODUCERS, "asyncio", tmp_path), names)  # noqa: S102 - our own page
    there = {
        (shard, each["SequenceNumber"]): json.loads(each["Data"])["message_id"]
        for shard in SHARDS
        for each in read(events, shard)
    }
    told = {(ln["shard_id"], ln["sequence_number"]): ln["message_id"] for ln in logged(tmp_path)}
    assert len(told) == 300
    assert told == there


class Killed(Exception):
    """Ends a worker between two records."""


def work(stream: Stream, worker: Any, checkpoints: dict[str, str]) -> None:
    """What a KCL does for a worker: each shard in batches of 10, from its checkpoint on."""
    for shard in SHARDS:
        worker.initialize(SimpleNamespace(shard_id=shard))
        while batch := read(stream, shard, after=checkpoints.get(shard))[:10]:
            come = [
                SimpleNamespace(binary_data=each["Data"], sequence_number=each["SequenceNumber"])
                for each in batch
            ]
            done = partial(checkpoints.__setitem__, shard, batch[-1]["SequenceNumber"])
            checkpointer = SimpleNamespace(checkpoint=done)
            worker.process_records(SimpleNamespace(records=come, checkpointer=checkpointer))


def test_worker_traces_what_it_read_and_sent_on_and_again_what_it_reads_again(
    address: str, tmp_path: Path
) -> None:
    orders, enriched = stream_of(address, "orders"), stream_of(address, "enriched")
    with traced(orders.client, str(tmp_path / "producer"), producer_id="p") as producer:
        producer.put_records(StreamName="orders", Records=records(40))
    sent: list[str] = []

    def send_on(data: bytes) -> None:
        if len(sent) == 15:
            sent.append("nothing: it is killed here")
            raise Killed
        enriched.client.put_record(StreamName="enriched", Data=data, PartitionKey=str(len(sent)))
        sent.append(json.loads(data)["message_id"])

    names: dict[str, Any] = {"send_on": send_on}
    exec(example(CONSUMERS, "A KCL worker", tmp_path / "place"), names)  # noqa: S102 - our own page
    checkpoints: dict[str, str] = {}
    with pytest.raises(Killed):
        work(orders, names["Enricher"](), checkpoints)
    work(orders, names["Enricher"](), checkpoints)
    names["place"].close()
    acknowledged, passed = (logged(tmp_path / side) for side in ("producer", "place"))
    where = {(ln["message_id"], ln["shard_id"], ln["sequence_number"]) for ln in acknowledged}
    assert {(ln["message_id"], ln["shard_id"], ln["sequence_number"]) for ln in passed} == where
    times = Counter((line["message_id"], line["event"]) for line in passed)
    landed = Counter(
        json.loads(each["Data"])["message_id"] for shard in SHARDS for each in read(enriched, shard)
    )
    assert sum(landed.values()) == 45  # five of the batch in which it was killed came twice
    assert {one: times[one, "sent"] for one in landed} == landed
    assert sum(times[one, "received"] for one in landed) == 46
