"""The door through which a backfill writes a user's Delta table: rows that are not there yet."""

import logging
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.engine.engine_errors import is_conflict
from shardaudit.columns.sql_name import quoted
from shardaudit.model.errors import RetryableError
from shardaudit.model.input_columns import SinkField

log = logging.getLogger(__name__)

_Made = TypeVar("_Made")
_MAX_TRIES = 8
_PAUSE_S = 1.0
_GONE, _COUNTED, _NOW = "_sa_gone", "_sa_counted", "_sa_now"
_CHANGED = "_sa_rows_changed"  # in the words of the engine's error
_COMING = "_sa_coming_"  # before a column of rows that come, beside the table's own
# In SQL: the clock, or what is drawn.
_EACH_TIME = re.compile(
    r"(?i)\b(cur|current_|local)(date|timestamp)\b|\b(now|unix_timestamp)\s*\(\s*\)"
    r"|\b(randn?|random|uuid)\s*\("
)
_TAG = "spark.databricks.delta.commitInfo.userMetadata"


class SinkChangedError(RetryableError, BlockingIOError):
    """Another writer was first, try after try: nothing was changed."""

    def __init__(self, path: str) -> None:
        super().__init__(f"other writers changed {path} while it was read: nothing was changed")


def beside_others(commit: Callable[[], _Made]) -> _Made:
    """What a commit returns, which is begun anew when another writer's was first.

    Raises:
        SinkChangedError: another one was first each time.
    """
    for tries in range(1, _MAX_TRIES):
        try:
            return commit()
        except SinkChangedError as error:
            log.info("%s: begins anew", error)
        time.sleep(_PAUSE_S * tries * (0.5 + random.random()))  # noqa: S311 - no secret
    return commit()


@dataclass(frozen=True, slots=True)
class Pruning:
    """Where in the sink a row of the same message can be: Column -> its values, or its range.

    `lacking`: columns of which the sink has rows without a value: such a row can be anyone's.
    """

    ranges: dict[str, tuple[object, object]]
    values: dict[str, list[object]]
    lacking: tuple[str, ...] = ()

    def condition(self) -> Column:
        """What the rows of the sink must meet."""
        holds = self.is_near()
        for is_lacking in self.are_lacking():
            holds |= is_lacking
        return holds

    def is_near(self) -> Column:
        """Whether a row of the sink that has all values can be one of them."""
        holds = F.lit(True)
        for name, (least, most) in self.ranges.items():
            holds &= F.col(quoted(name)).between(F.lit(least), F.lit(most))
        for name, values in self.values.items():
            holds &= F.col(quoted(name)).isin(values)
        return holds

    def are_lacking(self) -> list[Column]:
        """Whether a row of the sink lacks a value, by column."""
        return [F.col(quoted(name)).isNull() for name in self.lacking]


def depends_on_message_alone(
    spark: SparkSession, expression: str, fields: Sequence[SinkField], *, changing: Sequence[str]
) -> bool:
    """Whether an expression can be computed without what differs between deliveries.

    Input:
        changing: columns that do; the clock does as well, and what is drawn.
    """
    if _EACH_TIME.search(expression):
        return False
    kept = [f"{quoted(f.name)} {f.kind}" for f in fields if f.name not in changing]
    try:
        _ = spark.createDataFrame([], ", ".join(kept)).select(F.expr(expression)).schema
    except PySparkException:  # a proof may ask an engine that does not have its functions
        return False
    return True


def absent_rows(
    rows: DataFrame, table: DataFrame, *, ids: tuple[str, str], pruning: Pruning
) -> DataFrame:
    """The rows whose id is not in the table.

    Input:
        ids: the columns of the id, in `rows` as text, and in the table.
    """
    mine, theirs = ids
    # Looked for one by one: by an `or` of them no partition could be left out.
    known = [
        table.where(place).select(F.col(quoted(theirs)).cast("string").alias(mine))
        for place in (pruning.is_near(), *pruning.are_lacking())
    ]
    return rows.join(reduce(DataFrame.union, known), [mine], how="left_anti")


@dataclass(frozen=True, slots=True)
class SinkMerge:
    """Inserts rows into one Delta table whose message is not there. `id_column` holds the ids."""

    spark: SparkSession
    path: str
    id_column: str
    pruning: Pruning

    def merge(self, rows: DataFrame, *, tag: str) -> None:
        """Inserts in one commit what is not there; what is there is not touched.

        Other writers' commits are let through: the merge is tried again on what they left.

        Input:
            rows: the table's columns, unique on the id; tag: is kept in the commit.
        """
        beside_others(lambda: self._tagged(lambda: self._insert_absent(rows), tag))

    def replace(self, rows: DataFrame, *, counted: DataFrame, copies: DataFrame, tag: str) -> None:
        """Puts each row in the place of all rows of its id, in one commit.

        A merge cannot tell rows that are alike from each other: so all of an id go, and one comes.
        None goes that was not counted: `copies` are read in the merge's own transaction, of the
        very snapshot that it changes, and Delta refuses the commit when another one changed that.

        Input:
            rows: the table's columns, unique on the id, computed; counted: `id` (unique, text) and
            `digests` (of all its rows, sorted), computed; copies: the same, to be read again.

        Raises:
            SinkChangedError: other rows have these ids by now; nothing was changed.
        """
        self._tagged(lambda: self._replace(rows, counted, copies), tag)

    def _tagged(self, commit: Callable[[], None], tag: str) -> None:
        self.spark.conf.set(_TAG, tag)
        try:
            commit()
        except PySparkException as error:
            if is_conflict(error) or _CHANGED in str(error):
                raise SinkChangedError(self.path) from error
            raise
        finally:
            self.spark.conf.unset(_TAG)

    def _insert_absent(self, rows: DataFrame) -> None:
        same = F.col(quoted(self.id_column)) == F.col(quoted(_COMING + self.id_column))
        (
            _coming(rows)
            .mergeInto(self._target, same & self.pruning.condition())
            .whenNotMatched()
            .insert(_values(rows))
            .merge()
        )

    def _replace(self, rows: DataFrame, counted: DataFrame, copies: DataFrame) -> None:
        """Each row twice in the source: with its id, which matches, and with NULL: inserted."""
        mine = F.col(quoted(_COMING + self.id_column))
        before = counted.select(F.col("id").alias(_GONE), F.col("digests").alias(_COUNTED))
        now = copies.select(F.col("id").alias(_GONE), F.col("digests").alias(_NOW))
        is_same = F.col(_COUNTED).eqNullSafe(F.col(_NOW))
        # Unique on the id in all three.
        checked = (
            _coming(rows)
            .withColumn(_GONE, mine.cast("string"))
            .join(before, [_GONE], how="left")
            .join(now, [_GONE], how="left")
            .withColumn(_GONE, F.when(is_same, mine).otherwise(F.raise_error(F.lit(_CHANGED))))
        )
        none = F.lit(None).cast(rows.schema[self.id_column].dataType)
        both = checked.withColumn(_GONE, F.explode(F.array(F.col(_GONE), none)))
        same = F.col(quoted(self.id_column)) == F.col(_GONE)
        (
            both.mergeInto(self._target, same & self.pruning.condition())
            .whenMatched()
            .delete()
            .whenNotMatched(F.col(_GONE).isNull())
            .insert(_values(rows))
            .merge()
        )

    @property
    def _target(self) -> str:
        return f"delta.{quoted(self.path)}"


def _coming(rows: DataFrame) -> DataFrame:
    """The rows under names that the table does not have: nothing has to say whose column it is."""
    return rows.select(*(F.col(quoted(n)).alias(_COMING + n) for n in rows.columns))


def _values(rows: DataFrame) -> dict[str, Column]:
    return {quoted(name): F.col(quoted(_COMING + name)) for name in rows.columns}
