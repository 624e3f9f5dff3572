"""Which columns of a sink are read, under which standard names."""

from collections.abc import Collection, Mapping

from shardaudit.model.errors import FinalError, SinkSchemaError
from shardaudit.model.input_columns import REQUIRED, SINK_COLUMNS
from shardaudit.model.tables.table import INTERNAL_PREFIX


class ReservedColumnError(FinalError, ValueError):
    """An input uses a name that is kept for our own columns."""

    def __init__(self, column: str, *, version: str) -> None:
        super().__init__(
            f"column {column!r} of the sink ({version}) begins with {INTERNAL_PREFIX}, which is "
            "kept for shardaudit's own columns: rename it"
        )


def resolved_columns(
    found: Collection[str],
    mapped: Mapping[str, str],
    *,
    previous: Collection[str],
    version: str,
) -> dict[str, str]:
    """Standard name -> column of the sink, for those that it has.

    Input:
        found: the sink's columns. Letters' case matters only where two differ in nothing else.
        mapped: the configuration's `columns`.
        previous: the standard names that were read so far, and may not go.
        version: what the sink's state is called, for people.

    Raises:
        SinkSchemaError: a column that is mapped, needed or was read before is gone.
        ReservedColumnError: a column has a name of ours.
    """
    for column in found:
        if column.startswith(INTERNAL_PREFIX):
            raise ReservedColumnError(column, version=version)
    resolved: dict[str, str] = {}
    for standard in SINK_COLUMNS:
        name = mapped.get(standard, standard)
        match = _found(name, found)
        if match is not None:
            resolved[standard] = match
        elif standard in mapped or standard in previous or standard in REQUIRED:
            raise _gone(standard, name, found=found, version=version)
    return resolved


def _gone(standard: str, name: str, *, found: Collection[str], version: str) -> SinkSchemaError:
    return SinkSchemaError(column=standard, mapped_to=name, version=version, found=sorted(found))


def _found(name: str, found: Collection[str]) -> str | None:
    if name in found:
        return name
    alike = [column for column in found if column.casefold() == name.casefold()]
    return alike[0] if len(alike) == 1 else None
