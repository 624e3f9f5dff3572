"""Where a backfill's messages go that the sink does not have: into it, or into a stream again."""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.aws.kinesis import put_records
from shardaudit.adapters.aws.kinesis_pages import StreamAddress, stream_client
from shardaudit.backfill.backfill_sink import BackfillSink
from shardaudit.backfill.rules.decode import POSITION, position
from shardaudit.backfill.rules.republish import marked
from shardaudit.model.choices import BackfillMode
from shardaudit.model.own_rows import backfill_tag


@dataclass(frozen=True, slots=True)
class Landing:
    """One way to land; `republish_to` is the stream of the mode `republish`."""

    mode: BackfillMode
    sink: BackfillSink
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
        if self.republish_to is not None:
            _republish(absent, records, self.republish_to, plan_id)
        elif self.mode is BackfillMode.APPEND:
            self.sink.append(absent, job_id=plan_id)
        else:
            self.sink.merge(absent, tag=backfill_tag(plan_id), sent=sent)


def _republish(absent: DataFrame, records: DataFrame, address: StreamAddress, plan_id: str) -> None:
    """Puts the records from the driver, one call after the other: nobody's writes are crowded out.

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
    put_records(stream_client(address), address.stream_name, entries)
