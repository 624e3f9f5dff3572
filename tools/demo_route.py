"""The demo's second stream, by way of a router: on which hop each of its messages was lost.

Its producer has our emitter around its client, the router traces with our consumer. Traces say when
they were written: so its time is the machine's, not the simulated one.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Group, RenderableType
from rich.text import Text

from shardaudit.adapters.clock import now
from shardaudit.consumer import trace
from shardaudit.model.config.settings import Settings
from shardaudit.model.input_columns import PRODUCER
from shardaudit.model.route.route import SINK
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.window import Window
from shardaudit.model.words import messages
from shardaudit.producer import traced
from shardaudit.report.plain import harmless
from shardaudit.report.route_lines import lost_told
from shardaudit.simulate.kinesis_stream import DEFAULT_RETENTION, KinesisStream, endpoint_client
from shardaudit.simulate.output import SimulatedSink
from shardaudit.simulate.stream import Record
from shardaudit.store.audits import read_rows
from tools.demo_result import SHOWN

if TYPE_CHECKING:  # the stubs are installed for development only
    from mypy_boto3_kinesis import KinesisClient
    from mypy_boto3_kinesis.type_defs import PutRecordsRequestEntryTypeDef

STREAM, ROUTER = "orders", "router"
ROUTED = "orders-routed"  # what the router puts into, and the sink is filled from
ORDERS, SHARDS = 2_000, 2
_BATCH = 500  # Kinesis API, PutRecords
_SETTLED = timedelta(minutes=15)  # as of then: longer than settle_grace
# The number of an order says on which hop it is lost.
_BEFORE, _BEHIND = f"{PRODUCER} → {ROUTER}", f"{ROUTER} → {SINK}"
_EVERY = {_BEFORE: (400, 3), _BEHIND: (250, 5)}
_CONFIGURATION = f"""
[streams.{STREAM}]
stream_name = "{STREAM}"

[streams.{STREAM}.traces]
path = "{STREAM}/traces"
format = "json"

[streams.{STREAM}.sink]
path = "{STREAM}/sink"
format = "delta"
derived = {{ day = "date_format(sent_at, 'yyyy-MM-dd')" }}

[streams.{STREAM}.locations.{ROUTER}]
after = ["{PRODUCER}"]
"""


@dataclass(frozen=True, slots=True)
class Orders:
    """When they were put, and by message id the hop on which one was lost."""

    window: Window
    lost: Mapping[str, str]

    @property
    def asked(self) -> tuple[str, ...]:
        """The arguments of an audit of them, when all of it has settled."""
        return (
            f"--stream={STREAM}",
            f"--from={self.window.start.isoformat()}",
            f"--to={self.window.end.isoformat()}",
            f"--as-of={(self.window.end + _SETTLED).isoformat()}",
        )


@dataclass(frozen=True, slots=True)
class NamedHops:
    """By hop how many messages were lost there; those of which an audit says otherwise."""

    planted: Mapping[str, int]
    unlike: tuple[str, ...]

    @property
    def is_equal(self) -> bool:
        """Whether each was found, on its hop, and nothing else."""
        return not self.unlike


def add_orders(kinesis: str, config: Path) -> Orders:
    """Puts the orders, routes and lands them; adds the stream to the configuration.

    Input:
        kinesis: the stand-in's address; by its clock they arrive, which nothing looks at.
    """
    folder, began = config.parent / STREAM, now()
    client = endpoint_client(kinesis)
    arriving, routed = (KinesisStream(client, name, None) for name in (STREAM, ROUTED))
    for stream in (arriving, routed):
        stream.create(shards=SHARDS, retention=DEFAULT_RETENTION)
    _produce(client, folder / "traces")
    lost = _lost(_read(arriving))
    before_it = {one for one, hop in lost.items() if hop == _BEFORE}
    _route(client, _read(arriving, but=before_it), folder / "traces")
    _land(_read(routed, but=lost), folder / "sink")
    with config.open("a", encoding="utf-8") as file:
        file.write(_CONFIGURATION)
    return Orders(Window(began, now()), lost)


def named_hops(settings: Settings, orders: Orders) -> NamedHops:
    """The lost orders against what the audits found."""
    found = {
        str(row["message_id"]): lost_told(row["hops"]) or f"{row['kind']}, on no hop"
        for row in read_rows(settings, FINDINGS, where=pc.field("stream") == STREAM)
    }
    return NamedHops(
        planted=Counter(orders.lost.values()),
        unlike=tuple(
            f"{harmless(one)}: planted {orders.lost.get(one)}, found {found.get(one)}"
            for one in sorted(orders.lost.keys() | found.keys())
            if orders.lost.get(one) != found.get(one)
        ),
    )


def route_view(named: NamedHops) -> RenderableType:
    """The hops for people, in a line or two."""
    way = f"\n{STREAM}: traced by shardaudit.producer, and by shardaudit.consumer in its {ROUTER}"
    lost = [f"{messages(count)} lost on {hop}" for hop, count in sorted(named.planted.items())]
    said = ", ".join(lost)
    if named.is_equal:
        return Group(Text(way), Text(f"{said}: each named on its hop", style="bold green"))
    wrong = [Text(f"  {one}") for one in named.unlike[:SHOWN]]
    return Group(Text(way), Text(f"{said}: NOT as planted:", style="bold red"), *wrong)


def _produce(client: "KinesisClient", traces: Path) -> None:
    """Nothing but what a producer does: id and time come from the emitter."""
    with traced(client, str(traces), producer_id="shop") as producer:
        for first in range(0, ORDERS, _BATCH):
            records = [
                {"Data": json.dumps({"order": number}).encode(), "PartitionKey": str(number)}
                for number in range(first, first + _BATCH)
            ]
            producer.put_records(StreamName=STREAM, Records=records)


def _lost(records: Iterable[Record]) -> dict[str, str]:
    """By id the hop of each message that is to be lost."""
    put = [json.loads(record.content) for record in records]
    return {
        message["message_id"]: hop
        for hop, (every, nth) in _EVERY.items()
        for message in put
        if message["order"] % every == nth
    }


def _route(client: "KinesisClient", records: Sequence[Record], traces: Path) -> None:
    """Each message goes on with the place that it had in the producer's stream."""
    with trace(str(traces), stream=STREAM, location=ROUTER, producer_id="router-1") as router:
        for first in range(0, len(records), _BATCH):
            batch = records[first : first + _BATCH]
            received = [
                {"Data": r.content, "ShardId": r.shard_id, "SequenceNumber": r.sequence_number}
                for r in batch
            ]
            router.received(received)
            answer = client.put_records(StreamName=ROUTED, Records=[_onward(r) for r in batch])
            arrived = zip(received, answer["Records"], strict=True)
            router.sent([record for record, entry in arrived if "SequenceNumber" in entry])


def _onward(record: Record) -> "PutRecordsRequestEntryTypeDef":
    message = json.loads(record.content)
    place = {"shard_id": record.shard_id, "sequence_number": record.sequence_number}
    return {"Data": json.dumps(message | place).encode(), "PartitionKey": str(message["order"])}


def _land(records: Iterable[Record], sink: Path) -> None:
    rows = [_row(json.loads(record.content)) for record in records]
    SimulatedSink(str(sink)).append(pa.Table.from_pylist(rows).to_reader())


def _row(message: dict[str, Any]) -> dict[str, Any]:  # Any: of JSON, and of a row
    sent_at = datetime.fromisoformat(message["sent_at"])
    return message | {"sent_at": sent_at, "landed_at": now(), "day": f"{sent_at:%Y-%m-%d}"}


def _read(stream: KinesisStream, *, but: Collection[str] = ()) -> list[Record]:
    """All that a stream holds, without some message ids."""
    records = [record for page in stream.read() for record in page]
    return [r for r in records if json.loads(r.content)["message_id"] not in but]
