"""Deletion vectors: the numbers of a data file's rows that are deleted. For drivers and workers.

They are decoded here and not by an engine, so that a file can be read with the vector of any
commit, also when the table has another one by now.
Source: Delta's protocol, "Deletion Vectors" and "Deletion Vector Format".
"""

import base64
import uuid
import zlib
from urllib.parse import unquote

from pyroaring import BitMap64

from shardaudit.adapters.files.files import S3Access, open_file
from shardaudit.adapters.files.unpack import DamageError
from shardaudit.model.source import DeletionVector

_MAGIC = (1681511377).to_bytes(4, "little")
_UUID_CHARS = 20  # 16 bytes in base 85
_LENGTH_BYTES = _CHECKSUM_BYTES = 4

# Python has RFC 1924's alphabet; Delta writes ZeroMQ's.
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85 = str.maketrans(_Z85, _B85)


def located(folder: str, path: str) -> str:
    """What opens a file that a Delta log names: a URI, absolute or within the table's folder."""
    decoded = unquote(path)
    if decoded.startswith(("s3://", "s3n://")):
        return f"s3a://{decoded.partition('://')[2]}"
    if decoded.startswith("file:"):
        return f"/{decoded.removeprefix('file:').lstrip('/')}"
    is_absolute = decoded.startswith("/") or "://" in decoded
    return decoded if is_absolute else f"{folder}/{decoded}"


def deleted_rows(vector: DeletionVector, folder: str, access: S3Access) -> BitMap64:
    """The numbers of the deleted rows, from 0.

    Input:
        folder: of the table.

    Raises:
        DamageError: the vector is not there, or is not what the log says.
        StorageError: it could not be reached.
    """
    path = vector_path(vector, folder)
    if path is None:
        packed = _decoded(vector.place)[: vector.size_bytes]
    else:
        packed = _stored(path, vector, access)
    if packed[:4] != _MAGIC:
        raise DamageError(f"its deletion vector begins with {packed[:4].hex()}: an unknown format")
    try:
        rows = BitMap64.deserialize(packed[4:])
    except ValueError as error:
        raise DamageError(f"its deletion vector cannot be decoded: {error}") from error
    if len(rows) != vector.cardinality:
        raise DamageError(
            f"its deletion vector has {len(rows)} rows, the log says {vector.cardinality}"
        )
    return rows


def vector_path(vector: DeletionVector, folder: str) -> str | None:
    """The file that the vector is in; None when the log itself holds it.

    Raises:
        DamageError: nothing says where it is.
    """
    match vector.storage:
        case "i":
            return None
        case "p":
            return located(folder, vector.place)
        case "u" if len(vector.place) >= _UUID_CHARS:
            prefix, name = vector.place[:-_UUID_CHARS], vector.place[-_UUID_CHARS:]
            file = f"deletion_vector_{uuid.UUID(bytes=_decoded(name))}.bin"
            return "/".join(filter(None, (folder, prefix, file)))
    raise DamageError(f"its deletion vector is stored in an unknown way: {vector.storage!r}")


def _stored(path: str, vector: DeletionVector, access: S3Access) -> bytes:
    """The vector out of its file: behind its length, before its checksum."""
    size = vector.size_bytes
    try:
        with open_file(path, access) as file:
            file.seek(vector.offset or 0)
            stored = bytes(file.read(_LENGTH_BYTES + size + _CHECKSUM_BYTES))
    except FileNotFoundError as error:
        raise DamageError(f"its deletion vector is gone: {path}") from error
    packed = stored[_LENGTH_BYTES : _LENGTH_BYTES + size]
    is_whole = int.from_bytes(stored[:_LENGTH_BYTES], "big") == size == len(packed)
    if not is_whole or int.from_bytes(stored[-_CHECKSUM_BYTES:], "big") != zlib.crc32(packed):
        raise DamageError(f"its deletion vector is not what was written: {path}")
    return packed


def _decoded(text: str) -> bytes:
    try:
        return base64.b85decode(text.translate(_TO_B85))
    except ValueError as error:
        raise DamageError(f"its deletion vector is not base 85: {text[:40]!r}") from error
