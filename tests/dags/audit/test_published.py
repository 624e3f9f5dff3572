"""Published results read without Spark; the verdict task's tests cover the rest."""

import json
from pathlib import Path

import pytest
from deltalake import write_deltalake

from shardaudit.adapters.lake.broken_tables import WarehouseUnreadableError
from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import AUDITS
from shardaudit.simulate.s3proxy import s3_proxy
from shardaudit.store.audits import audit_row
from shardaudit.store.published import published_audit
from tests.dags.warehouses import arrow, audit, cell, missing, write_result

STREAM = {"stream_name": "events", "traces": {"path": "t"}, "sink": {"path": "s"}}


def settings(warehouse: str, **aws: object) -> Settings:
    streams = {"events": {**STREAM, "trace_coverage_floor": 0.9}}
    return Settings.model_validate({"warehouse": warehouse, "aws": aws, "streams": streams})


def shards_of(warehouse: Path) -> list[tuple[str, str]]:
    report = published_audit(settings(str(warehouse)), "events", "a")
    return [(shard.shard_id, shard.verdict.value) for shard in report.worst_shards]


def test_a_shard_has_the_sums_of_all_files_and_the_worst_verdict(tmp_path: Path) -> None:
    write_result(tmp_path, audits=[audit("a", verdict="loss")])
    for minute, verdict in enumerate(["ok", "duplication", "loss", "pending"]):
        cells = [cell("a", "shard-1", minute=minute, verdict=verdict, sent=10, landed=9)]
        lost = [missing("a", str(minute), shard_id="shard-1")]
        write_result(tmp_path, audits=[], cells=cells, findings=lost)
    (shard,) = published_audit(settings(str(tmp_path)), "events", "a").worst_shards
    assert (shard.verdict, shard.sent, shard.landed) == ("loss", 40, 36)


def test_shards_come_worst_first_and_only_those_that_are_not_well(tmp_path: Path) -> None:
    shards = {"c": ("loss", 1), "a": ("ok", 0), "b": ("loss", 5), "d": ("silent", 1)}
    write_result(
        tmp_path,
        audits=[audit("a", verdict="silent")],
        cells=[cell("a", s, verdict=verdict, missing=n) for s, (verdict, n) in shards.items()],
        findings=[missing("a", shard, shard_id=shard) for shard in shards],
    )
    assert shards_of(tmp_path) == [("d", "silent"), ("b", "loss"), ("c", "loss")]


@pytest.mark.parametrize(
    ("verdict", "said", "shown"),
    [
        ("loss", {"shard-1": "untraced"}, [("shard-2", "loss"), ("shard-1", "untraced")]),
        ("inconclusive", {"shard-2": "ok"}, [("shard-1", "inconclusive")]),
        # What an older audit tolerated is not known: none of its shards was worse than all.
        ("untraced", None, [("shard-2", "untraced"), ("shard-1", "untraced")]),
        ("loss", None, [("shard-2", "loss"), ("shard-1", "inconclusive")]),
    ],
)
def test_a_shard_has_the_verdict_that_the_run_gave_it(
    tmp_path: Path, verdict: str, said: dict[str, str] | None, shown: list[tuple[str, str]]
) -> None:
    cells = [
        cell("a", "shard-1", verdict="inconclusive", matched=1, untraced=1),
        cell("a", "shard-1", minute=1, matched=98),
        cell("a", "shard-2", verdict="loss", missing=1),
    ]
    row = audit("a", verdict=verdict, shard_verdicts=said and json.dumps(said))
    write_result(tmp_path, audits=[row], cells=cells)
    assert shards_of(tmp_path) == shown


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
