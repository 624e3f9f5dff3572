"""What a session was asked for once, it is not asked for again."""

from typing import Any

from pyspark.sql.connect.client.core import ConfigResult
from pyspark.sql.connect.conf import RuntimeConf

from shardaudit.adapters.engine.connect import remember_settings


class _Client:
    """A server's client that counts what it is asked."""

    def __init__(self) -> None:
        self.set: dict[str, str] = {}
        self.asked = 0

    def config(self, operation: Any) -> ConfigResult:
        self.asked += 1
        kind = operation.WhichOneof("op_type")
        pairs = getattr(operation, kind).pairs
        if kind == "set":
            self.set |= {pair.key: pair.value for pair in pairs}
            return ConfigResult(pairs=[], warnings=[])
        return ConfigResult(
            pairs=[(pair.key, self.set.get(pair.key, pair.value)) for pair in pairs], warnings=[]
        )


def test_a_setting_is_asked_for_once_until_something_is_set() -> None:
    client: Any = _Client()
    remember_settings(client)
    conf = RuntimeConf(client)
    assert [conf.get("a", "of old") for _ in range(3)] == ["of old"] * 3
    assert client.asked == 1
    conf.set("a", "new")
    assert [conf.get("a", "of old") for _ in range(2)] == ["new"] * 2
    assert client.asked == 3
