"""Deletion vectors as a writer of Delta tables makes them."""

import base64
import uuid
import zlib
from collections.abc import Iterable
from pathlib import Path

from pyroaring import BitMap64

from shardaudit.model.source import DeletionVector

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
MAGIC = 1681511377


def packed(rows: Iterable[int], *, magic: int = MAGIC) -> bytes:
    """The bytes of a vector."""
    return magic.to_bytes(4, "little") + bytes(BitMap64(rows).serialize())


def z85(content: bytes) -> str:
    """Base 85 as ZeroMQ writes it; zeros are added to a multiple of four bytes."""
    whole = content + b"\0" * (-len(content) % 4)
    return base64.b85encode(whole).decode().translate(str.maketrans(_B85, _Z85))


def inline(rows: Iterable[int]) -> DeletionVector:
    """A vector in the log itself."""
    numbers = list(rows)
    content = packed(numbers)
    return DeletionVector("i", z85(content), None, len(content), len(numbers))


def stored(
    folder: Path, rows: Iterable[int], *, prefix: str = "", is_absolute: bool = False
) -> DeletionVector:
    """A vector in a file of its own, behind another one."""
    numbers = list(rows)
    name = uuid.uuid4()
    path = folder / prefix / f"deletion_vector_{name}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = packed(numbers)
    checksum = zlib.crc32(content).to_bytes(4, "big")
    path.write_bytes(b"\1another" + len(content).to_bytes(4, "big") + content + checksum)
    storage, place = ("p", path.as_uri()) if is_absolute else ("u", prefix + z85(name.bytes))
    return DeletionVector(storage, place, 8, len(content), len(numbers))
