"""Where the simulator leaves things; `simulate/output.py` does it."""

from typing import Protocol

import pyarrow as pa


class Folder(Protocol):
    """A place for whole files, on disk or on S3."""

    def write(self, name: str, content: bytes) -> None:
        """Writes a file."""


class SinkTable(Protocol):
    """A Delta table or a Parquet folder that grows."""

    def append(self, rows: pa.RecordBatchReader) -> None:
        """Adds rows, in one commit or file."""
