"""Published results read without Spark; the verdict task's tests cover the rest."""

from pathlib import Path

import pytest
from deltalake import write_deltalake

from shardaudit.adapters.published import WarehouseUnreadableError, audit_row, shard_sums
from shardaudit.adapters.s3proxy import s3_proxy
from shardaudit.model.config import Settings
from shardaudit.model.tables import AUDITS
from shardaudit.model.verdict import Verdict
from tests.dags.warehouses import arrow, audit, cell, write_result


def settings(warehouse: str, **aws: object) -> Settings:
    return Settings.model_validate({"warehouse": warehouse, "aws": aws, "streams": {}})


def test_a_shard_has_the_sums_of_all_files_and_the_worst_verdict(tmp_path: Path) -> None:
    for minute, verdict in enumerate(["ok", "duplication", "loss", "pending"]):
        cells = [cell("a", "shard-1", minute=minute, verdict=verdict, sent=10, landed=9)]
        write_result(tmp_path, audits=[], cells=cells)
    (shard,) = shard_sums(settings(str(tmp_path)), "a")
    assert shard.verdict is Verdict.LOSS
    assert (shard.sums["sent"], shard.sums["landed"]) == (40, 36)


def test_shards_come_worst_first(tmp_path: Path) -> None:
    shards = {"c": ("loss", 1), "a": ("ok", 0), "b": ("loss", 5), "d": ("silent", 1)}
    cells = [cell("a", s, verdict=verdict, missing=n) for s, (verdict, n) in shards.items()]
    write_result(tmp_path, audits=[], cells=cells)
    found = [shard.shard_id for shard in shard_sums(settings(str(tmp_path)), "a")]
    assert found == ["d", "b", "c", "a"]


@pytest.mark.aws
def test_a_warehouse_on_s3_is_read_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with s3_proxy(tmp_path) as s3:
        (tmp_path / "lake").mkdir()
        write_deltalake(
            "s3://lake/audits",
            arrow(AUDITS, [audit("a", verdict="loss")]),
            storage_options=s3.storage_options(),
        )
        for name, value in s3.environment().items():
            monkeypatch.setenv(name, value)
        row = audit_row(settings("s3a://lake", endpoints={"s3": s3.url}), "a")
    assert row is not None
    assert row["verdict"] == "loss"


@pytest.mark.aws
def test_a_warehouse_that_does_not_answer_may_do_so_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret")
    nobody = settings("s3a://lake", region="us-east-1", endpoints={"s3": "http://127.0.0.1:1"})
    with pytest.raises(WarehouseUnreadableError) as unreadable:
        audit_row(nobody, "a")
    assert "s3a://lake/audits" in str(unreadable.value)
    assert "very-secret" not in str(unreadable.value)
