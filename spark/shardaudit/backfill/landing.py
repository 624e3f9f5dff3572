"""The sink as a backfill sees it: its columns' sources, what is not there, and how it lands."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.aws.kinesis import put_all
from shardaudit.adapters.aws.kinesis_pages import StreamAddress, stream_client
from shardaudit.adapters.files.files import S3Access, s3_access
from shardaudit.adapters.lake.delta_sink_reader import DeltaSink
from shardaudit.adapters.lake.delta_sink_writer import (
    Pruning,
    SinkMerge,
    absent_rows,
    depends_on_message_alone,
)
from shardaudit.adapters.lake.parquet_append import (
    append_files,
    dataset_rows,
    parquet_fields,
    stage_files,
)
from shardaudit.backfill.rules.column_sources import FROM_MESSAGE, FROM_RECORD, column_sources
from shardaudit.backfill.rules.copies import COPY, INTERNAL_OF_COPIES, digests_by_id
from shardaudit.backfill.rules.decode import ID, INTERNAL, POSITION, decoded, position
from shardaudit.backfill.rules.republished import marked
from shardaudit.columns.sql_name import quoted
from shardaudit.model.config.choices import BackfillMode, SinkFormat
from shardaudit.model.config.settings import Settings
from shardaudit.model.input_columns import Origin, Source
from shardaudit.model.source import backfill_tag
from shardaudit.model.window import EPOCH
from shardaudit.store.audits import read_eras

# A consumer may keep times to the second or to the millisecond.
_PRECISION = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class BackfillSink:
    """One sink. `pruned_by`: partitions in which all copies of a message lie together.

    `margin`: copies of a message may be stamped so far apart without being known as such.
    `checks`: as for `decoded`.
    """

    spark: SparkSession
    path: str
    access: S3Access
    format: SinkFormat
    sources: tuple[Source, ...]
    id_column: str
    sent_column: str
    pruned_by: tuple[str, ...]
    order_columns: tuple[str, ...]
    margin: timedelta
    checks: Mapping[str, str] = field(default_factory=dict)

    def decoded(self, records: DataFrame, *, landed_at: datetime) -> DataFrame:
        """The records as rows of the sink, see `backfill/rules/decode.py`."""
        ids = (self.id_column, self.sent_column)
        return decoded(records, self.sources, ids=ids, landed_at=landed_at, checks=self.checks)

    def table(self) -> DataFrame:
        """Its rows as they are now."""
        if self.format is SinkFormat.DELTA:
            return self.spark.read.format("delta").load(self.path)
        return dataset_rows(self.spark, self.path, [source.field for source in self.sources])

    def absent(
        self, rows: DataFrame, *, sent: tuple[datetime, datetime] | None = None
    ) -> DataFrame:
        """The rows whose message is not there.

        Input:
            rows: decoded, unique on the id, computed (they are read several times); sent: from and
            to of the times of all rows of these messages, where they may have others than these.
        """
        pruning = self._pruning(rows, sent)
        return absent_rows(rows, self.table(), ids=(ID, self.id_column), pruning=pruning)

    def merge(
        self, absent: DataFrame, *, tag: str, sent: tuple[datetime, datetime] | None = None
    ) -> None:
        """Inserts the rows, but those whose message came meanwhile; `sent`: as for `absent`."""
        pruning = self._pruning(absent, sent)
        SinkMerge(self.spark, self.path, self.id_column, pruning).merge(
            absent.drop(*INTERNAL), tag=tag
        )

    def append(self, absent: DataFrame, *, job_id: str, check: Callable[[], None]) -> None:
        """Adds the rows as files of their own, which appear once `check` returned."""
        partitions = [source.field.name for source in self.sources if source.field.partitions]
        rows = absent.drop(*INTERNAL)
        staged = stage_files(rows, self.path, partitions=partitions, job_id=job_id)
        check()  # to write them may have taken minutes
        append_files(staged, self.path, self.access, job_id=job_id)

    @property
    def landing_order(self) -> list[str]:
        """Its columns that tell which row of a message landed first, as far as it has them."""
        names = {source.field.name for source in self.sources}
        return [name for name in self.order_columns if name in names]

    def rows_of(self, ids: DataFrame, *, key: str, sent: tuple[datetime, datetime]) -> DataFrame:
        """All rows of some messages, those without a time too.

        Input:
            ids: unique texts in the column `key`; sent: from and to of the times of these rows.
        """
        rows = self.table().where(self._sent_near(sent).condition())
        same = F.col(quoted(self.id_column)).cast("string") == F.col(key)
        return rows.join(ids, same, how="left_semi")

    def keep_one(
        self, counted: DataFrame, copies: DataFrame, *, sent: tuple[datetime, datetime], tag: str
    ) -> None:
        """Leaves of each message the first row: one commit, of exactly what was counted.

        Input:
            counted: of `numbered_copies` of what `rows_of` reads, computed; copies: the same, to be
            read again; sent: as for `rows_of`.

        Raises:
            SinkChangedError: they are no longer the same; nothing was removed.
        """
        first = counted.where(F.col(COPY) == 1).drop(*INTERNAL_OF_COPIES)
        SinkMerge(self.spark, self.path, self.id_column, self._sent_near(sent)).replace(
            first, counted=digests_by_id(counted), copies=digests_by_id(copies), tag=tag
        )

    def _sent_near(self, sent: tuple[datetime, datetime]) -> Pruning:
        """The rows sent from and to; all, where the sink's time is none that can be compared."""
        kinds = {source.field.name: source.field.kind for source in self.sources}
        if kinds.get(self.sent_column) != "timestamp":
            return Pruning({}, {})
        edges = (sent[0] - self.margin, sent[1] + self.margin)
        return Pruning({self.sent_column: edges}, {}, (self.sent_column,))

    def _pruning(self, rows: DataFrame, sent_edges: tuple[datetime, datetime] | None) -> Pruning:
        """Where copies of these messages can be.

        Without edges their `sent_at`, and the partitions that hang on it, are theirs alone.
        """
        if sent_edges is not None:
            return self._sent_near(sent_edges)
        lacking = self._lacking()
        kinds = {source.field.name: source.field.kind for source in self.sources}
        sets = [F.collect_set(quoted(name)).alias(f"in {name}") for name in self.pruned_by]
        if kinds.get(self.sent_column) != "timestamp":
            found = rows.agg(F.count("*"), *sets).collect()[0]
            values = {name: found[f"in {name}"] for name in self.pruned_by}
            return Pruning({}, values, lacking)
        sent = F.col(quoted(self.sent_column))
        found = rows.agg(
            F.unix_micros(F.min(sent)).alias("first"),
            F.unix_micros(F.max(sent)).alias("last"),
            F.count_if(sent.isNull()).alias("unknown"),
            *sets,
        ).collect()[0]
        values = {name: found[f"in {name}"] for name in self.pruned_by}
        if found["first"] is None or found["unknown"]:
            return Pruning({}, values, lacking)
        edges = (_instant(found["first"]) - self.margin, _instant(found["last"]) + self.margin)
        return Pruning({self.sent_column: edges}, values, lacking)

    def _lacking(self) -> tuple[str, ...]:
        """The columns that prune and of which a row has no value: it may be of any message.

        Asked column by column: the files' statistics answer for those that have all values.
        """
        prune = [
            s.field for s in self.sources if s.field.name in (self.sent_column, *self.pruned_by)
        ]
        return tuple(
            field.name
            for field in prune
            if field.nullable
            and not self.table().where(F.col(quoted(field.name)).isNull()).limit(1).isEmpty()
        )


def sink_sources(settings: Settings, name: str, *, only_ids: bool = False) -> list[Source]:
    """Where each column of the stream's sink comes from; no engine is asked.

    Input:
        only_ids: of a row the id and the time are enough: somebody else writes it.

    Raises:
        ConfigError: a column that must have a value has no source, or there is no such sink.
    """
    stream = settings.stream(name)
    path, names, access = stream.sink.path, dict(stream.sink.columns), s3_access(settings.aws)
    is_delta = stream.sink.format is SinkFormat.DELTA
    fields = DeltaSink(path, access).at().fields if is_delta else parquet_fields(path, access)
    derived, paths = stream.sink.derived, stream.backfill.fields
    if only_ids:
        needed = {names.get(standard, standard) for standard in FROM_MESSAGE}
        fields = [field for field in fields if field.name in needed]
        derived = {name: text for name, text in derived.items() if name in needed}
        paths = {name: text for name, text in paths.items() if name in needed}
    return column_sources(fields, columns=names, derived=derived, paths=paths)


def backfill_sink(
    spark: SparkSession, settings: Settings, name: str, *, only_ids: bool = False
) -> BackfillSink:
    """The stream's sink, once it is sure that its rows can be made; see `sink_sources`."""
    stream = settings.stream(name)
    names = stream.sink.columns
    sources = sink_sources(settings, name, only_ids=only_ids)
    fields = [source.field for source in sources]
    changing = [names.get(standard, standard) for standard in FROM_RECORD]
    for source in sources:  # in the table's order: each may hang on those before it
        if source.origin is Origin.DERIVED and not depends_on_message_alone(
            spark, source.text, fields, changing=changing
        ):
            changing.append(source.field.name)
    of_message = (Origin.PAYLOAD, Origin.DERIVED)
    pruned_by = [
        source.field.name
        for source in sources
        if source.field.partitions
        and source.origin in of_message
        and source.field.name not in changing
    ]
    id_column, sent_column = (names.get(standard, standard) for standard in FROM_MESSAGE)
    return BackfillSink(
        spark,
        stream.sink.path,
        s3_access(settings.aws),
        stream.sink.format,
        tuple(sources),
        id_column,
        sent_column,
        tuple(pruned_by),
        tuple(names.get(name, name) for name in ("landed_at", "sequence_number")),
        max(_PRECISION, read_eras(settings, name).widest),
        {} if only_ids else _checks(spark, settings, name, sources),
    )


def _checks(
    spark: SparkSession, settings: Settings, name: str, sources: Sequence[Source]
) -> dict[str, str]:
    """What a Delta sink asks of each row, as far as it can be asked before."""
    sink = settings.stream(name).sink
    if sink.format is not SinkFormat.DELTA:
        return {}
    given = [source.field for source in sources if source.origin is not Origin.TABLE]
    return {
        check: text
        for check, text in DeltaSink(sink.path, s3_access(settings.aws)).at().checks.items()
        # Not of what the table computes, or of the clock.
        if depends_on_message_alone(spark, text, given, changing=())
    }


def _instant(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


@dataclass(frozen=True, slots=True)
class Landing:
    """One way to land; `republish_to` is the stream of the mode `republish`.

    `check` is called before what must not be done twice: it raises when the run lost its locks.
    """

    mode: BackfillMode
    sink: BackfillSink
    check: Callable[[], None]
    republish_to: StreamAddress | None = None

    def land(
        self,
        absent: DataFrame,
        records: DataFrame,
        *,
        plan_id: str,
        sent: tuple[datetime, datetime] | None,
    ) -> None:
        """Lands the messages, each once unless this dies on its way into a stream.

        Input:
            absent: decoded rows that the sink does not have, computed; records: as they were read;
            sent: as for `BackfillSink.absent`.
        """
        self.check()
        if self.republish_to is not None:
            self._republish(absent, records, self.republish_to, plan_id)
        elif self.mode is BackfillMode.APPEND:
            self.sink.append(absent, job_id=plan_id, check=self.check)
        else:
            self.sink.merge(absent, tag=backfill_tag(plan_id), sent=sent)

    def _republish(
        self, absent: DataFrame, records: DataFrame, address: StreamAddress, plan_id: str
    ) -> None:
        """Puts the records from the driver, call by call: nobody's writes are crowded out.

        They are taken in the order of their places, so that a shard's are as they were.
        """
        # Unique on the position on both sides: a place in a stream holds one record.
        chosen = (
            records.withColumn(POSITION, position())
            .join(absent.select(POSITION), [POSITION], how="left_semi")
            .orderBy("shard_id", F.length("sequence_number"), "sequence_number", "sub_sequence")
        )
        entries = (
            (row.partition_key, marked(bytes(row.content), plan_id))
            for row in chosen.select("partition_key", "content").toLocalIterator()
        )
        put_all(stream_client(address), address.stream_name, entries, check=self.check)
