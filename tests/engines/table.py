"""What a table of nasty values is, and the list of all of them.

A table is a function from a session to rows that are made of literals alone: it runs on both
engines, and what comes out must be the same, value by value and type by type. `covers` names what
of `subset.py` it is about.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession

Rows = Callable[[SparkSession], DataFrame]


@dataclass(frozen=True, slots=True)
class Table:
    """`rows` gives one row per case, told apart by the column `case`."""

    name: str
    covers: tuple[str, ...]
    rows: Rows


TABLES: list[Table] = []


def table(*covers: str) -> Callable[[Rows], Rows]:
    """Adds the function to the tables; each word of `covers` is a name of the subset."""

    def added(rows: Rows) -> Rows:
        TABLES.append(Table(rows.__name__, tuple(w for c in covers for w in c.split()), rows))
        return rows

    return added


def cases(spark: SparkSession, values: Iterable[object], ddl: str) -> DataFrame:
    """One row per value (a tuple has those of several columns), numbered in `case`."""
    rows = [
        (number, *(value if isinstance(value, tuple) else (value,)))
        for number, value in enumerate(values)
    ]
    return spark.createDataFrame(rows, f"case int, {ddl}")


def shown(rows: DataFrame, **answers: Column) -> DataFrame:
    """The case and its answers, by their names."""
    return rows.select("case", *(answer.alias(name) for name, answer in answers.items()))


def grouped(groups: Sequence[Sequence[object]]) -> list[tuple[int, object]]:
    """(number of the group, value) for each value of each group."""
    return [(number, value) for number, group in enumerate(groups) for value in group]
