"""The ways to land besides the merge: Parquet files, a stream again, somebody's own job."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from shardaudit.backfill.rules.planned import Plan
from shardaudit.backfill.rules.republished import PUT_AGAIN
from shardaudit.model.errors import GateError, LockLostError
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.simulate.kinesis_stream import endpoint_client
from shardaudit.store.warehouse import Warehouse
from tests.spark.losses import Loss, planted_loss

pytestmark = pytest.mark.apache_spark  # repairs


def configure(loss: Loss, backfill: str) -> None:
    """Adds lines to the backfill's table, the last of the file."""
    file = loss.folder / "shardaudit.toml"
    file.write_text(f"{file.read_text()}{backfill}\n")


def lost(loss: Loss) -> set[object]:
    """The 10 messages that a plan without the stuck tail brings back."""
    planted = loss.simulated.planted
    return {
        row["message_id"]
        for row in planted
        if row["fault"] in ("lost", "cancel") and (row["kind"], row["state"]) == ("missing", "open")
    }


def deliver(loss: Loss, contents: list[bytes]) -> None:
    """What a consumer does with records: rows of the sink."""
    table = DeltaTable(str(loss.folder / "sink"))
    traces = {row["message_id"]: row for row in loss.simulated.traces}
    rows: list[dict[str, object]] = []
    for content in contents:
        message = json.loads(content)
        trace = traces[message["message_id"]]
        rows.append(
            {
                "message_id": message["message_id"],
                "shard_id": trace["shard_id"],
                # Of records that were put once more it is another one.
                "sequence_number": str(int(str(trace["sequence_number"])) + len(rows)),
                "sent_at": datetime.fromisoformat(message["sent_at"]),
                "landed_at": loss.scenario.as_of,
                "day": message["sent_at"][:10],
            }
        )
    landed = pa.Table.from_pylist(rows, pa.schema(table.schema().to_arrow()))
    write_deltalake(table, landed, mode="append")


def test_parquet_sink_gets_files_of_the_plan_and_each_message_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    with planted_loss(spark, tmp_path / "demo") as loss:
        files = tmp_path / "files"
        delta = spark.read.format("delta").load(str(loss.folder / "sink"))
        delta.coalesce(1).write.partitionBy("day").parquet(str(files))
        config = loss.folder / "shardaudit.toml"
        text = config.read_text().replace('path = "sink"', f'path = "{files}"')
        config.write_text(text.replace('format = "delta"', 'format = "parquet"'))
        loss.audited()
        before = {file.name for file in files.rglob("*.parquet")}
        plan = loss.planned()
        with pytest.raises(LockLostError):  # when all is written aside
            dying(loss, (files / "_shardaudit").exists).run(plan)
        assert {file.name for file in files.glob("day=*/*.parquet")} == before
        replayed, said = loss.replayed(plan), loss.proof(plan)
        assert (replayed, said["recovered"], said["left"]) == (ExitCode.DONE, 10, 0)
        assert loss.run(plan) is None
        new = {file.name for file in files.rglob("*.parquet")} - before
        assert {name.startswith(f"shardaudit-{plan.plan_id}-") for name in new} == {True}
        rows = spark.read.parquet(str(files))
        landed = Counter(row.message_id for row in rows.select("message_id").collect())
        assert {landed[one] for one in lost(loss)} == {1}
        assert landed.total() == delta.count() + 10
        assert {row.day for row in rows.select(rows.day.cast("string").alias("day")).collect()} == {
            row.day for row in delta.select("day").collect()
        }
        assert not list((files / "_shardaudit").rglob("*.parquet"))


def dying(loss: Loss, when: Callable[[], bool]) -> Loss:
    """The same, for a run that loses its lock."""

    def check() -> None:
        if when():
            raise LockLostError(loss.settings.warehouse, "another run")

    place = str(loss.folder / "warehouse")
    return replace(loss, warehouse=Warehouse(loss.warehouse.spark, place, check=check))


def put_again(loss: Loss) -> Counter[tuple[str, str]]:
    """What the stream `again` has, by whose run."""
    messages = [json.loads(record) for record in loss.records("again")]
    return Counter((message["message_id"], message["replayed_by"]) for message in messages)


def told(loss: Loss, plan: Plan) -> set[tuple[str, bool]]:
    """The states of the windows that had something to put; whether they tell of doubles."""
    windows = [window for window in loss.windows(plan) if window.merged_rows]
    return {(window.state.value, PUT_AGAIN in (window.error or "")) for window in windows}


def test_republished_messages_are_recovered_when_they_landed(loss: Loss) -> None:
    """The first run dies behind its puts: the second one puts them again, and says so."""
    client = endpoint_client(loss.control.url)
    client.create_stream(StreamName="again", ShardCount=1)
    configure(loss, 'mode = "republish"\nrepublish_to = "again"')
    before, plan = loss.landed(), loss.planned()
    with pytest.raises(LockLostError):
        dying(loss, lambda: bool(loss.records("again"))).run(plan)
    once = put_again(loss)
    assert once == Counter((one, plan.plan_id) for one in lost(loss))
    assert told(loss, plan) == {("running", False)}
    assert (loss.replayed(plan), loss.proof(plan)["left"]) == (ExitCode.DONE, 10)
    assert (put_again(loss), told(loss, plan)) == (once + once, {("merged", True)})
    assert loss.landed() == before
    assert (loss.findings()["lost", "replayed"], loss.planned().windows) == (9, ())
    deliver(loss, loss.records("again"))
    replayed, said = loss.replayed(plan), loss.proof(plan)
    counts = (said["recovered"], said["left"], len(loss.records("again")))
    assert (replayed, counts) == (ExitCode.DONE, (10, 0, 20))
    doubles = loss.warehouse.rows(FINDINGS, where=pc.field("kind") == "duplicated")
    causes = {row["cause"] for row in doubles if row["message_id"] in lost(loss)}
    ended = (told(loss, plan), loss.findings()["lost", "recovered"], causes)
    assert ended == ({("verified", True)}, 9, {"backfill"})


def test_requested_windows_wait_until_an_audit_sees_them_landed(loss: Loss) -> None:
    asked = loss.folder / "asked"
    configure(loss, 'mode = "request"\nrequest_to = "asked"')
    before = loss.landed()
    plan = loss.planned()
    assert (loss.replayed(plan), loss.proof(plan)["left"]) == (ExitCode.DONE, 10)
    assert {w.state for w in loss.windows(plan)} == {"running"}
    (file,) = asked.iterdir()
    document = json.loads(file.read_text())
    assert file.name == f"{plan.plan_id}.json"
    assert sum(one["expected_ids"] for one in document["windows"]) == 10
    assert loss.landed() == before
    assert (loss.findings()["lost", "planned"], loss.planned().windows) == (9, ())
    wanted = lost(loss)
    records = [one for one in loss.records("events") if json.loads(one)["message_id"] in wanted]
    deliver(loss, records)
    replayed, said = loss.replayed(plan), loss.proof(plan)
    assert (replayed, said["recovered"], said["left"]) == (ExitCode.DONE, 10, 0)
    assert {w.state for w in loss.windows(plan)} == {"verified"}


@pytest.mark.drill
def test_nothing_lands_while_the_decoder_fails_and_all_does_with_another(
    loss: Loss,
) -> None:
    configure(loss, 'decoder = "zlib:decompress"')
    before = loss.landed()
    with pytest.raises(GateError, match="can be decoded"):
        loss.run(loss.planned())
    assert loss.landed() == before
    assert not any(state == "recovered" for _, state in loss.findings())
    reasons = {row["reason"] for row in loss.quarantined()}
    assert reasons == {"the decoder could not read the content"}

    file = loss.folder / "shardaudit.toml"
    file.write_text(file.read_text().replace("zlib:decompress", "json:loads"))
    verified = loss.ran(loss.planned())
    assert (verified.recovered, verified.left) == (10, 0)
    landed = loss.landed()
    assert {landed[one] for one in lost(loss)} == {1}
