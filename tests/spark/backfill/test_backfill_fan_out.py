"""A backfill that reads by enhanced fan-out, after one that died with its consumer."""

import signal
import time

import pytest

from shardaudit.simulate.kinesis_stream import endpoint_client
from tests.spark.commands import started
from tests.spark.losses import NAME, Loss

pytestmark = [pytest.mark.apache_spark, pytest.mark.drill]  # repairs; minutes


def consumers(loss: Loss) -> list[str]:
    client = endpoint_client(loss.control.url)
    summary = client.describe_stream_summary(StreamName=NAME)["StreamDescriptionSummary"]
    found = client.list_stream_consumers(StreamARN=summary["StreamARN"])["Consumers"]
    return [one["ConsumerName"] for one in found]


def killed_while_it_reads(loss: Loss, words: list[str]) -> None:
    """Starts the command and kills it as soon as it has a consumer."""
    process = started(loss.folder, words)
    until = time.monotonic() + 300
    while len(consumers(loss)) < 2 and process.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_every_lost_message_lands_once_and_no_consumer_of_ours_stays(loss: Loss) -> None:
    client = endpoint_client(loss.control.url)
    summary = client.describe_stream_summary(StreamName=NAME)["StreamDescriptionSummary"]
    client.register_stream_consumer(StreamARN=summary["StreamARN"], ConsumerName="analytics")
    file = loss.folder / "shardaudit.toml"
    file.write_text(f"{file.read_text()}fanout = true\n")
    loss.control.change({"subscription_s": 0})  # over after each event
    before = loss.landed()
    plan = loss.planned()
    words = ["backfill", "run", "--plan", plan.plan_id, "--approve-as", "ann"]
    killed_while_it_reads(loss, [*words, "--as-of", loss.scenario.as_of.isoformat()])
    left, stranger = sorted(consumers(loss), reverse=True)
    assert (left.startswith("shardaudit-"), stranger) == (True, "analytics")

    verified = loss.run(plan)

    assert verified is not None
    assert (verified.recovered, verified.left, verified.cut_short) == (10, 0, 0)
    assert consumers(loss) == ["analytics"]
    found = loss.findings()
    assert (found["lost", "recovered"], found["cancel", "recovered"]) == (9, 1)
    landed = loss.landed() - before
    assert set(landed.values()) == {1}
    assert len(landed) == 10
