"""What a footer says of a file of a sink: whether it is sound, and what may read it."""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from shardaudit.adapters.lake.parquet_file import Column, Footer
from shardaudit.adapters.lake.sink_file import SinkFile, Wanted

# Names that both engines, and what they read S3 with, take as they are.
_PLAIN = re.compile(r"(s3a:/)?(/[A-Za-z0-9._=+@,~-]+)*/[A-Za-z0-9=+@,~-][A-Za-z0-9._=+@,~-]*")


@dataclass(frozen=True, slots=True)
class ReadyFile:
    """A file whose footer was read: its columns have the names that they have in it.

    `layout`: as in Footer; `is_plain`: both engines read it, and alike.
    """

    file: SinkFile
    layout: str
    is_plain: bool

    @property
    def group(self) -> Hashable:
        """What files must have in common for an engine to read them in one frame."""
        names = tuple(wanted.name for _, wanted in sorted(self.file.columns.items()))
        return self.layout, names, tuple(sorted(self.file.constants.items()))


def footer_fault(file: SinkFile, footer: Footer) -> str | None:
    """Why the file cannot be read; None when its footer tells of nothing."""
    if footer.fault is None and footer.size_bytes != file.known.size_bytes:
        return f"it has {footer.size_bytes} bytes and should have {file.known.size_bytes}"
    by_number = any(wanted.field_id is not None for wanted in file.columns.values())
    if by_number and all(column.field_id is None for column in footer.columns):
        return footer.fault or "its columns have no numbers, by which the table finds them"
    return footer.fault


def may_lack(file: SinkFile, footer: Footer, names: Sequence[str]) -> bool:
    """Whether a row of the file may have NULL in one of these standard columns."""
    return any(_nulls(file, footer, name) != 0 for name in names)


def must_lack(file: SinkFile, footer: Footer, names: Sequence[str]) -> bool:
    """Whether each row of the file has NULL in one of these standard columns.

    Nothing is known of a file whose footer cannot be read: its reader tells of it.
    """
    return footer.fault is None and any(_is_nowhere(file, footer, name) for name in names)


def _nulls(file: SinkFile, footer: Footer, name: str) -> int | None:
    """How many rows have NULL, 1 where all have; None where nobody knows."""
    if _is_nowhere(file, footer, name):
        return 1
    if name in file.constants:
        return 0
    found = _like(file.columns[name], footer.columns)
    return found[0].nulls if len(found) == 1 else None


def _is_nowhere(file: SinkFile, footer: Footer, name: str) -> bool:
    if name in file.constants:
        return file.constants[name].value is None
    return name not in file.columns or not _like(file.columns[name], footer.columns)


def ready_file(file: SinkFile, footer: Footer) -> ReadyFile:
    """The file as its sound footer says that it can be read."""
    is_plain = file.vector is None and _PLAIN.fullmatch(file.path) is not None
    columns: dict[str, Wanted] = {}
    for standard, wanted in file.columns.items():
        match _like(wanted, footer.columns):
            case []:
                columns[standard] = wanted  # NULL in every row
            case [column]:
                columns[standard] = replace(wanted, name=column.name)
                is_plain = is_plain and column.is_plain and column.kind == wanted.kind
            case _:
                columns[standard], is_plain = wanted, False
    return ReadyFile(replace(file, columns=columns), footer.layout, is_plain)


def _like(wanted: Wanted, columns: Sequence[Column]) -> list[Column]:
    """The columns of a file that may be meant; letters' case matters to no engine."""
    if wanted.field_id is not None:
        return [column for column in columns if column.field_id == wanted.field_id]
    return [column for column in columns if column.name.casefold() == wanted.name.casefold()]
