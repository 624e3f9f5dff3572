"""Positions that a consumer writes as JSON Lines: `{shard_id, sequence_number, observed_at}`."""

import logging
from collections.abc import Iterator
from datetime import datetime

from shardaudit.adapters.files.files import S3Access, list_files, open_file
from shardaudit.adapters.files.lines import line_groups
from shardaudit.model.config.choices import PositionSource
from shardaudit.model.errors import ConfigError
from shardaudit.model.sequence import Position, is_sequence_number
from shardaudit.model.trace_line import read_object
from shardaudit.model.window import parse_instant

log = logging.getLogger(__name__)

_SHOWN_FAULTS = 5


def read_position_files(folder: str, access: S3Access, *, as_of: datetime) -> list[Position]:
    """The newest position of each shard that was observed by then, in the order of the shards.

    A line that cannot be used is logged and passed over; the shard's older line counts. So is a
    file that is gone by the time that it is read.

    Raises:
        StorageError: the folder or a file could not be reached.
    """
    newest: dict[str, tuple[datetime, Position]] = {}
    faults: list[str] = []
    for file in list_files(folder, access):
        for place, raw, fault in _lines(file.path, access):
            try:
                observed_at, position = _position(raw, fault, folder)
            except ConfigError as error:
                faults.append(f"{place}: {error}")
                continue
            old = newest.get(position.shard_id)
            if observed_at <= as_of and (old is None or observed_at >= old[0]):
                newest[position.shard_id] = (observed_at, position)
    for text in faults[:_SHOWN_FAULTS]:
        log.warning("passed over: %s", text)
    if len(faults) > _SHOWN_FAULTS:
        log.warning("passed over: %d lines more", len(faults) - _SHOWN_FAULTS)
    return [position for _, (_, position) in sorted(newest.items())]


def _lines(path: str, access: S3Access) -> Iterator[tuple[str, bytes, str | None]]:
    """Place, content and fault of each line that is not blank."""
    try:
        with open_file(path, access) as file:
            for numbers, lines, fault in line_groups(file, path):
                for number, line in zip(numbers, lines, strict=True):
                    yield f"{path}:{number or '?'}", line, fault
    except FileNotFoundError:
        yield path, b"", "it is gone"


def _position(raw: bytes, fault: str | None, folder: str) -> tuple[datetime, Position]:
    line, why_not = read_object(raw)
    if fault or why_not:
        raise ConfigError("line", fault or why_not, "one JSON object")
    shard_id, sequence = line.get("shard_id"), line.get("sequence_number")
    if not isinstance(shard_id, str) or not shard_id:
        raise ConfigError("shard_id", shard_id, "a text")
    if not isinstance(sequence, str) or not is_sequence_number(sequence):
        raise ConfigError("sequence_number", sequence, "a sequence number as text")
    observed_at = parse_instant(str(line.get("observed_at")), where="observed_at")
    return observed_at, Position(
        source=PositionSource.FILE,
        consumer=folder,
        shard_id=shard_id,
        checkpoint=sequence,
        reported_at=observed_at,
    )
