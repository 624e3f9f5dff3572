"""The sink as a backfill writes it: its columns' sources, and the merge of what is not there."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.delta_merge import Pruning, SinkMerge, depends_on_message_alone
from shardaudit.adapters.delta_sink import DeltaSink
from shardaudit.backfill.decode import ID, INTERNAL, WINDOW, decoded
from shardaudit.backfill.safety import check_sink
from shardaudit.backfill.sources import FROM_RECORD, column_sources
from shardaudit.model.config import Settings
from shardaudit.model.sink_field import Origin, Source
from shardaudit.model.sql_name import quoted

# A consumer may keep times to the second or to the millisecond.
_PRECISION = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class BackfillSink:
    """One Delta sink. `pruned_by`: partitions in which all copies of a message lie together."""

    spark: SparkSession
    path: str
    sources: tuple[Source, ...]
    id_column: str
    sent_column: str
    pruned_by: tuple[str, ...]
    order_columns: tuple[str, ...]

    def decoded(self, records: DataFrame, *, landed_at: datetime) -> DataFrame:
        """The records as rows of the sink, see `backfill/decode.py`."""
        ids = (self.id_column, self.sent_column)
        return decoded(records, self.sources, ids=ids, landed_at=landed_at)

    def merge(self, rows: DataFrame, *, tag: str) -> dict[str, int]:
        """Inserts the rows whose message is not there: how many, by window.

        Input:
            rows: decoded, unique on the id, computed (they are read several times).
        """
        target = SinkMerge(self.spark, self.path, self.id_column, self._pruning(rows))
        absent = target.absent(rows, id_text=ID).localCheckpoint()
        counts = {row[WINDOW]: row["count"] for row in absent.groupBy(WINDOW).count().collect()}
        if counts:
            target.merge(absent.drop(*INTERNAL), tag=tag)
        return counts

    @property
    def landing_order(self) -> list[str]:
        """Its columns that tell which row of a message landed first, as far as it has them."""
        names = {source.field.name for source in self.sources}
        return [name for name in self.order_columns if name in names]

    def rows_of(self, ids: DataFrame, *, key: str, sent: tuple[datetime, datetime]) -> DataFrame:
        """All rows of some messages.

        Input:
            ids: unique texts in the column `key`; sent: from and to of their `sent_at`.
        """
        rows = self.spark.read.format("delta").load(self.path)
        kinds = {source.field.name: source.field.kind for source in self.sources}
        if kinds.get(self.sent_column) == "timestamp":
            edges = (F.lit(sent[0] - _PRECISION), F.lit(sent[1] + _PRECISION))
            rows = rows.where(F.col(quoted(self.sent_column)).between(*edges))
        same = F.col(quoted(self.id_column)).cast("string") == F.col(key)
        return rows.join(ids, same, how="left_semi")

    def keep_one(self, rows: DataFrame, *, tag: str) -> None:
        """Puts each row in the place of all rows of its message, in one commit.

        Input:
            rows: the table's columns, unique on the id, computed.
        """
        SinkMerge(self.spark, self.path, self.id_column, self._pruning(rows)).replace(rows, tag=tag)

    def _pruning(self, rows: DataFrame) -> Pruning:
        """Where copies of these messages can be: `sent_at` and what hangs on it is theirs alone."""
        kinds = {source.field.name: source.field.kind for source in self.sources}
        sets = [F.collect_set(quoted(name)).alias(f"in {name}") for name in self.pruned_by]
        if kinds.get(self.sent_column) != "timestamp":
            found = rows.agg(F.count("*"), *sets).collect()[0]
            return Pruning({}, {name: found[f"in {name}"] for name in self.pruned_by})
        sent = F.col(quoted(self.sent_column))
        found = rows.agg(
            F.unix_micros(F.min(sent)).alias("first"),
            F.unix_micros(F.max(sent)).alias("last"),
            F.count_if(sent.isNull()).alias("unknown"),
            *sets,
        ).collect()[0]
        values = {name: found[f"in {name}"] for name in self.pruned_by}
        if found["first"] is None or found["unknown"]:
            return Pruning({}, values)
        edges = (_instant(found["first"]) - _PRECISION, _instant(found["last"]) + _PRECISION)
        return Pruning({self.sent_column: edges}, values)


def backfill_sink(spark: SparkSession, settings: Settings, name: str) -> BackfillSink:
    """The stream's sink, once it is sure that a backfill can write it.

    Raises:
        ConfigError: this mode or decoder is not there, commits are not safe, or a column that must
            have a value has no source.
    """
    stream = settings.stream(name)
    check_sink(name, stream, spark_settings=settings.spark)
    fields = DeltaSink(spark, stream.sink.path).fields()
    names = dict(stream.sink.columns)
    sources = column_sources(
        fields, columns=names, derived=stream.sink.derived, paths=stream.backfill.fields
    )
    changing = [names.get(standard, standard) for standard in FROM_RECORD]
    pruned_by = [
        source.field.name
        for source in sources
        if source.field.partitions
        and (
            source.origin is Origin.PAYLOAD
            or (
                source.origin is Origin.DERIVED
                and depends_on_message_alone(spark, source.text, fields, changing=changing)
            )
        )
    ]
    return BackfillSink(
        spark,
        stream.sink.path,
        tuple(sources),
        names.get("message_id", "message_id"),
        names.get("sent_at", "sent_at"),
        tuple(pruned_by),
        tuple(names.get(name, name) for name in ("landed_at", "sequence_number")),
    )


def _instant(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
