"""A file of an input, as a listing shows it."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class SourceFile:
    """One version of one file: rewritten, it has another size or another time."""

    path: str
    size_bytes: int
    modified_ms: int
