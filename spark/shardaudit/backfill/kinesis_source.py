"""The PySpark data source `kinesis`: windows of a stream's shards as rows, read on the workers.

One partition is one shard: its windows are read one after the other, the most urgent first, so
that they share one pace and never read more than the shard's share, however many there are.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

import shardaudit
from shardaudit.adapters.aws.kinesis_fan_out import FanOutPages
from shardaudit.adapters.aws.kinesis_pages import ShardPages, StreamAddress
from shardaudit.backfill.rules.aggregated_records import UserRecord
from shardaudit.backfill.rules.pace import Pace
from shardaudit.backfill.rules.reading import OldestRecord, ReadOutcome, ReadWindow
from shardaudit.backfill.rules.republished import json_value
from shardaudit.backfill.window_reader import WindowReader
from shardaudit.model.errors import ConfigError
from shardaudit.model.get_records import StreamPage

# What a record's content means: names and values that JSON can hold, times as datetimes.
Decode = Callable[[bytes], Any]  # Any: the user's

JSON = "json"  # the decoder that Spark is itself
# A row is a record, or, where `outcome` (JSON) is not NULL, what came of a window. `decoded` is the
# JSON that the user's decoder made of the content: empty where it failed, NULL when there is none.
SCHEMA_DDL = (
    "window_id string, shard_id string, sequence_number string, sub_sequence int, "
    "partition_key string, arrived_at timestamp, content binary, decoded binary, outcome string"
)
_ARROW = pa.schema(
    [
        ("window_id", pa.string()),
        ("shard_id", pa.string()),
        ("sequence_number", pa.string()),
        ("sub_sequence", pa.int32()),
        ("partition_key", pa.string()),
        ("arrived_at", pa.timestamp("us", "UTC")),
        ("content", pa.binary()),
        ("decoded", pa.binary()),
        ("outcome", pa.string()),
    ]
)


def decoder(text: str) -> Decode:
    """The function that turns a record's content into the message's fields.

    Raises:
        ConfigError: it cannot be imported here, or is no function.
    """
    module, _, name = text.partition(":")
    wanted = "package.module:function, to be imported on the driver and on every worker"
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError("backfill.decoder", f"{text} ({error})", wanted) from error
    if not callable(function):
        raise ConfigError("backfill.decoder", f"{text}, which is no function", wanted)
    return function  # type: ignore[no-any-return] # the user's


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """How windows are read: from where, how fast, and decoded by what.

    With a `consumer_arn` by enhanced fan-out, whose throughput is its own: as fast as it comes.
    """

    address: StreamAddress
    read_share: float
    decoder: str = JSON
    consumer_arn: str | None = None


def read_windows(
    spark: SparkSession, reading: ReadSettings, windows: Sequence[ReadWindow]
) -> DataFrame:
    """The records of the windows, in the columns of SCHEMA_DDL, read when an action asks for them.

    Read it once: each action reads the stream again.
    """
    # By value, as in adapters/files/sources.py: a cluster's workers need not have this package.
    cloudpickle.register_pickle_by_value(shardaudit)  # type: ignore[no-untyped-call]
    spark.dataSource.register(KinesisSource)
    texts = [{key: json_value(value) for key, value in asdict(w).items()} for w in windows]
    return (
        spark.read.format(KinesisSource.name())
        .option("address", json.dumps(asdict(reading.address)))
        .option("windows", json.dumps(texts))
        .option("read_share", str(reading.read_share))
        .option("decoder", reading.decoder)
        .option("consumer_arn", reading.consumer_arn or "")
        .load()
    )


def read_outcome_of(text: str) -> ReadOutcome:
    """What a row of `outcome` says."""
    fields: dict[str, Any] = json.loads(text)  # Any: JSON
    for name in ("expired_from", "expired_to", "begins_at"):
        fields[name] = None if fields[name] is None else datetime.fromisoformat(fields[name])
    return ReadOutcome(**fields)


@dataclass
class ShardPartition(InputPartition):
    """One shard with its windows, in the order in which they are read."""

    windows: list[ReadWindow]


class KinesisSource(DataSource):
    """What Spark asks for the schema and the reader."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "kinesis"

    def schema(self) -> str:
        """The columns."""
        return SCHEMA_DDL

    def reader(self, schema: StructType) -> "KinesisReader":
        """The reader for these options."""
        del schema  # there is but one
        return KinesisReader(self.options)


class KinesisReader(DataSourceReader):
    """Runs on the driver for the partitions, on the workers for their rows."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._address = StreamAddress(**json.loads(options["address"]))
        self._windows = [_window(fields) for fields in json.loads(options["windows"])]
        self._read_share = float(options["read_share"])
        self._decoder = options["decoder"]
        self._consumer_arn = options["consumer_arn"]

    def partitions(self) -> Sequence[InputPartition]:
        """One for each shard."""
        by_shard: dict[str, list[ReadWindow]] = {}
        for window in self._windows:
            by_shard.setdefault(window.shard_id, []).append(window)
        return [ShardPartition(windows) for windows in by_shard.values()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The shard's windows, each closed by the row that tells what came of it."""
        assert isinstance(partition, ShardPartition)  # noqa: S101 - what partitions() made
        pace = Pace(math.inf if self._consumer_arn else self._read_share)
        decode = None if self._decoder == JSON else decoder(self._decoder)
        page: StreamPage | None = None
        oldest = OldestRecord()
        with closing(self._pages()) as pages:
            for window in partition.windows:
                reader = WindowReader(pages, window, pace, at_hand=page, oldest=oldest)
                for records in reader.batches():
                    yield _batch(window, records, decode)
                yield _outcome_row(window, reader.outcome)
                page = reader.last_page
        pace.wait()  # what was read is paid before anybody else reads the shard

    def _pages(self) -> ShardPages | FanOutPages:
        if self._consumer_arn:
            return FanOutPages(self._address, self._consumer_arn)
        return ShardPages(self._address)


def _batch(
    window: ReadWindow, records: Sequence[UserRecord], decode: Decode | None
) -> pa.RecordBatch:
    count = len(records)
    decoded = [None if decode is None else _decoded(decode, one.content) for one in records]
    columns = [
        pa.array([window.window_id] * count, pa.string()),
        pa.array([window.shard_id] * count, pa.string()),
        pa.array([record.sequence_number for record in records], pa.string()),
        pa.array([record.sub_sequence for record in records], pa.int32()),
        pa.array([record.partition_key for record in records], pa.string()),
        pa.array([record.arrived_at for record in records], pa.timestamp("us", "UTC")),
        pa.array([record.content for record in records], pa.binary()),
        pa.array(decoded, pa.binary()),
        pa.nulls(count, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW)


def _decoded(decode: Decode, content: bytes) -> bytes:
    """The message as JSON; nothing when the function failed: the record is then set aside."""
    try:
        return json.dumps(decode(content), default=_as_text).encode()
    except Exception:  # noqa: BLE001 - the user's function, and its library's, fail as they like
        return b""


def _as_text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is nothing that JSON holds")


def _outcome_row(window: ReadWindow, outcome: ReadOutcome) -> pa.RecordBatch:
    said = json.dumps({key: json_value(value) for key, value in asdict(outcome).items()})
    row = {"window_id": window.window_id, "shard_id": window.shard_id, "outcome": said}
    return pa.RecordBatch.from_pylist([row], schema=_ARROW)


def _window(fields: dict[str, Any]) -> ReadWindow:  # Any: JSON
    instants = {n: datetime.fromisoformat(fields[n]) for n in ("start", "end", "horizon")}
    return ReadWindow(**fields | instants)
