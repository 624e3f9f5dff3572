"""Each sink column has one source, or the plan stops with its name."""

import pytest

from shardaudit.backfill.rules.column_sources import column_sources
from shardaudit.model.errors import ConfigError
from shardaudit.model.input_columns import Origin, SinkField

STANDARD = [
    SinkField("id", "string", nullable=False),
    SinkField("shard_id", "string"),
    SinkField("sent_at", "timestamp"),
    SinkField("landed_at", "timestamp"),
    SinkField("amount", "int"),
]
NAMES = {"message_id": "id"}


def test_values_come_from_the_record_the_configuration_and_the_payload() -> None:
    fields = [
        *STANDARD,
        SinkField("day", "string", partitions=True),
        SinkField("hour", "int", partitions=True, computes=True),
        SinkField("user", "string", nullable=False),
    ]
    derived, paths = {"day": "date(sent_at)"}, {"user": "$.meta.user"}
    found = column_sources(fields, columns=NAMES, derived=derived, paths=paths)
    assert [(one.field.name, one.origin, one.text) for one in found] == [
        ("id", Origin.PAYLOAD, "$['id']"),
        ("shard_id", Origin.RECORD, "shard_id"),
        ("sent_at", Origin.PAYLOAD, "$['sent_at']"),
        ("landed_at", Origin.RECORD, "landed_at"),
        ("amount", Origin.PAYLOAD, "$['amount']"),
        ("day", Origin.DERIVED, "date(sent_at)"),
        ("hour", Origin.TABLE, ""),
        ("user", Origin.PAYLOAD, "$.meta.user"),
    ]


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (SinkField("day", "string", partitions=True), "day.*it partitions"),
        (SinkField("user", "string", nullable=False), "user.*NOT NULL"),
    ],
)
def test_needed_column_without_a_source_stops_the_plan(field: SinkField, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        column_sources([*STANDARD, field], columns=NAMES, derived={}, paths={})


def test_column_that_the_sink_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"sink.derived: found 'dya'"):
        column_sources(STANDARD, columns=NAMES, derived={"dya": "1"}, paths={})
    with pytest.raises(ConfigError, match=r"backfill.fields: found 'dya'"):
        column_sources(STANDARD, columns=NAMES, derived={}, paths={"dya": "$.x"})
