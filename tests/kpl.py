"""Records as the Kinesis Producer Library packs them."""

import hashlib
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from shardaudit.backfill.rules.aggregated_records import MAGIC

_FIELDS = {
    "Tag": [("key", 1, 9, 2, ""), ("value", 2, 9, 1, "")],
    "Record": [
        ("partition_key_index", 1, 4, 2, ""),
        ("explicit_hash_key_index", 2, 4, 1, ""),
        ("data", 3, 12, 2, ""),
        ("tags", 4, 11, 3, ".kpl.Tag"),
    ],
    "AggregatedRecord": [
        ("partition_key_table", 1, 9, 3, ""),
        ("explicit_hash_key_table", 2, 9, 3, ""),
        ("records", 3, 11, 3, ".kpl.Record"),
    ],
}


def _message() -> Any:  # Any: a class made at run time
    file = descriptor_pb2.FileDescriptorProto(name="kpl.proto", package="kpl", syntax="proto2")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind, label, of in fields:
            added = message.field.add(name=field, number=number, type=kind, label=label)
            if of:
                added.type_name = of
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("kpl.AggregatedRecord"))


AGGREGATE = _message()


def aggregate(records: list[tuple[str, bytes]], *, hash_keys: bool = False) -> bytes:
    message = AGGREGATE()
    keys = sorted({key for key, _ in records})
    message.partition_key_table.extend(keys)
    if hash_keys:
        message.explicit_hash_key_table.append("5")
    for key, content in records:
        one = message.records.add(partition_key_index=keys.index(key), data=content)
        if hash_keys:
            one.explicit_hash_key_index = 0
            one.tags.add(key="k", value="v")
    return framed(message.SerializeToString())


def framed(body: bytes) -> bytes:
    return bytes(MAGIC + body + hashlib.md5(body, usedforsecurity=False).digest())
