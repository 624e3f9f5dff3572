"""What a footer says of the times in a file: a bound is never past a row."""

import io
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shardaudit.adapters.lake.parquet_file import read_footer

T0 = datetime(2026, 11, 20, 12, tzinfo=UTC)
MICROS = int(T0.timestamp()) * 1_000_000
UTC_TIMES = pa.timestamp("us", "UTC")


def span_of(*columns: tuple[str, pa.Array], **options: object) -> tuple[int, int] | None:
    names, arrays = zip(*columns, strict=True)
    file = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(list(arrays), names=list(names)), file, **options)
    found = read_footer(pa.BufferReader(file.getvalue())).columns
    return next(column.span for column in found if column.name == "sent_at")


def times(kind: pa.DataType, *seconds: float | None) -> tuple[str, pa.Array]:
    zone = None if kind.tz is None else UTC
    values = [None if s is None else (T0 + timedelta(seconds=s)).replace(tzinfo=zone)
              for s in seconds]  # fmt: skip
    return "sent_at", pa.array(values, kind)


@pytest.mark.parametrize("unit", ["us", "ms"])
@pytest.mark.parametrize("zone", ["UTC", None])
def test_span_is_over_all_row_groups(unit: str, zone: str | None) -> None:
    column = times(pa.timestamp(unit, zone), 5, 7, -3, None, 60, 1)
    assert span_of(column, row_group_size=2) == (MICROS - 3_000_000, MICROS + 60_000_000)


def test_span_is_known_when_there_is_no_row() -> None:
    assert span_of(times(UTC_TIMES)) == (0, 0)


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ([times(UTC_TIMES, 1, 2)], {"write_statistics": False}),
        ([times(UTC_TIMES, 1), times(UTC_TIMES, 2)], {}),
        ([times(UTC_TIMES, None, None)], {}),
        ([times(pa.timestamp("ns", "UTC"), 1)], {"version": "2.6"}),
        ([times(UTC_TIMES, 1)], {"use_deprecated_int96_timestamps": True}),
        ([("sent_at", pa.array([1, 2]))], {}),
    ],
    ids=["no statistics", "two columns of one name", "NULL alone", "ns", "old type", "numbers"],
)
def test_span_is_not_known(columns: list[tuple[str, pa.Array]], options: dict[str, object]) -> None:
    assert span_of(*columns, **options) is None
