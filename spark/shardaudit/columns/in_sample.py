"""Which ids are audited where a stream is sampled; the producer's is `producer/sample.py`."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from shardaudit.columns.instants import by_era
from shardaudit.model.config.eras import Eras
from shardaudit.model.sampling import SAMPLED_PARTS


def in_sample(message_id: Column, sample_rate: float) -> Column:
    """Whether an id belongs to the audited share: the same on both sides, and from run to run."""
    return _part(message_id) < _sampled_parts(sample_rate)


def in_era_sample(message_id: Column, sent_at: Column, eras: Eras) -> Column | None:
    """Whether an id is in the sample of its era; None: all are, in each.

    Where nobody says when it was sent, in that of any era.
    """
    rates = {shape.sample_rate for _, shape in eras.spans}
    if rates == {1}:
        return None
    if len(rates) == 1:
        return in_sample(message_id, *rates)
    parts = by_era(sent_at, eras, lambda shape: F.lit(_sampled_parts(shape.sample_rate)))
    most = F.lit(_sampled_parts(max(rates)))
    return _part(message_id) < F.when(sent_at.isNull(), most).otherwise(parts)


def _part(message_id: Column) -> Column:
    return F.pmod(F.xxhash64(message_id), F.lit(SAMPLED_PARTS))


def _sampled_parts(sample_rate: float) -> int:
    return round(sample_rate * SAMPLED_PARTS)
