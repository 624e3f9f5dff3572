"""Which sink column gets its value from where; a needed one without a source stops the plan."""

from collections.abc import Iterable, Mapping

from shardaudit.model.errors import ConfigError
from shardaudit.model.input_columns import SINK_COLUMNS, Origin, SinkField, Source

FROM_RECORD = ("shard_id", "sequence_number", "arrived_at", "landed_at")
FROM_MESSAGE = ("message_id", "sent_at")
WHOLE_PAYLOAD = "$"


def column_sources(
    fields: Iterable[SinkField],
    *,
    columns: Mapping[str, str],
    derived: Mapping[str, str],
    paths: Mapping[str, str],
) -> list[Source]:
    """One source per column, in the table's order.

    What the payload holds is not known before it is read. So a column that must have a value is
    refused unless it is named: as a standard column, in `derived` or in `fields`.

    Input:
        columns: standard name -> column, where they differ; derived: column -> SQL; paths: column
        -> JSON path.

    Raises:
        ConfigError: a column that may not be NULL, or that partitions, has no source; or the
            configuration names a column that the sink does not have.
    """
    fields = list(fields)
    standard = {columns.get(name, name): name for name in SINK_COLUMNS}
    names = {field.name for field in fields}
    for where, given in (("sink.derived", derived), ("backfill.fields", paths)):
        for name in given:
            if name not in names:
                raise ConfigError(where, name, f"a column of the sink: {', '.join(sorted(names))}")
    return [_source(field, standard.get(field.name), derived, paths) for field in fields]


def _source(
    field: SinkField, standard: str | None, derived: Mapping[str, str], paths: Mapping[str, str]
) -> Source:
    if field.computes:
        return Source(field, Origin.TABLE, "")
    if field.name in derived:
        return Source(field, Origin.DERIVED, derived[field.name])
    if field.name in paths:
        return Source(field, Origin.PAYLOAD, paths[field.name])
    if standard in FROM_RECORD:
        return Source(field, Origin.RECORD, standard)
    if standard not in FROM_MESSAGE and (field.partitions or not field.nullable):
        raise ConfigError(
            f"sink column {field.name}",
            "no source" + (", and it partitions" if field.partitions else ", and it is NOT NULL"),
            f'`derived = {{ {field.name} = "SQL" }}` under the sink, or '
            f'`fields = {{ {field.name} = "$.path" }}` under the backfill',
        )
    return Source(field, Origin.PAYLOAD, _path(field.name))


def _path(name: str) -> str:
    quote = '"' if "'" in name else "'"
    return f"$[{quote}{name}{quote}]"
