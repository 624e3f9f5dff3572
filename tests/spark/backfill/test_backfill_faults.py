"""The whole way, from the plan to the sink, when the stream does all that it may."""

import json
from collections import Counter
from datetime import datetime, timedelta

import pytest

from shardaudit.model.exit_code import ExitCode
from shardaudit.model.window import Window
from shardaudit.simulate.kinesis_stream import endpoint_client
from tests.faulty_kinesis import EXPIRED, THROTTLED, Faults, faulty_kinesis
from tests.kpl import aggregate
from tests.spark.losses import NAME, Loss
from tests.unit.simulate.kinesis import Kinesis

pytestmark = pytest.mark.apache_spark  # repairs

LENGTH = timedelta(minutes=40)


def put_more(loss: Loss, at: datetime) -> list[object]:
    """Puts an aggregate of 20 messages, and a record that is none; the messages' ids."""
    client = endpoint_client(loss.control.url)
    loss.control.hold(at)
    ids: list[object] = [f"kpl-{n}" for n in range(20)]
    users = [
        (f"user-{one}", json.dumps({"message_id": one, "sent_at": at.isoformat()}).encode())
        for one in ids
    ]
    content = aggregate(users, hash_keys=True)
    client.put_record(StreamName=NAME, Data=content, PartitionKey="aggregate")
    client.put_record(StreamName=NAME, Data=b"\xff\x00 no message", PartitionKey="broken")
    loss.control.hold(loss.scenario.as_of)
    return ids


def test_each_message_lands_once_whatever_the_stream_does_meanwhile(loss: Loss) -> None:
    """A range by hand over the last minutes and all shards, of which some are closed."""
    window = Window(loss.scenario.window.end - LENGTH, loss.scenario.window.end)
    since = window.start.isoformat()[:19]
    in_range = [r["message_id"] for r in loss.simulated.traces if str(r["sent_at"]) >= since]
    aggregated = put_more(loss, window.start + LENGTH / 2)
    before = loss.landed()
    kinesis = Kinesis(endpoint_client(loss.control.url), NAME)
    faults = Faults(page=10, at_call={4: lambda: kinesis.split(0)})
    with faulty_kinesis(loss.control.url, faults) as proxy:
        file = loss.folder / "shardaudit.toml"
        file.write_text(file.read_text().replace(loss.control.url, proxy))
        plan = loss.planned(window=window)
        assert loss.replayed(plan) == ExitCode.DONE
        assert loss.proof(plan, ends=ExitCode.FAILED)["left"] == 0
    # Nobody traced the aggregate's messages: of their cell no audit can say that all is there.
    (untraced,) = [w for w in loss.windows(plan) if w.state != "verified"]
    assert untraced.error == (
        "of 1 cell no audit can say that all is there: too few of its landed messages have a trace"
    )
    landed = loss.landed()
    wanted = {*in_range, *aggregated}
    added = {(before[one] > 0, landed[one] - before[one]) for one in wanted}
    assert added == {(True, 0), (False, 1)}
    assert Counter({one: n for one, n in landed.items() if one not in wanted}) <= before
    (refused,) = loss.quarantined()
    assert (refused["file"].partition("-")[0], refused["reason"]) == (
        *(f"kinesis:{NAME}/shardId", "the content is no JSON in UTF-8"),
    )
    calls = faults.happened["GetRecords"] + faults.happened["GetShardIterator"]
    assert 0.2 < faults.happened[THROTTLED] / calls < 0.4
    assert (bool(faults.at_call), faults.happened[EXPIRED] > 0) == (False, True)
