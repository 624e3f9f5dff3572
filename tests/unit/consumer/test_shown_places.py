"""docs/consumers.md: its examples run, and its lines are taken."""

import base64
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any  # of events and records

import pytest

from shardaudit.adapters.files.json_traces import json_batches
from shardaudit.model.input_columns import TRACE_COLUMNS
from tests.unit.consumer.received import SHARD, record
from tests.unit.producer.pages import CONSUMERS, example, shown
from tests.unit.producer.puts import FakeKinesis, logged

COLUMNS = {name: name for name in TRACE_COLUMNS}


def in_lambda(number: int) -> dict[str, Any]:
    """A record of a stream as a Lambda gets it."""
    message = record(number)
    return {
        "eventID": f"{message['ShardId']}:{message['SequenceNumber']}",
        "kinesis": {
            "data": base64.b64encode(message["Data"]).decode(),
            "partitionKey": str(number),
            "sequenceNumber": message["SequenceNumber"],
        },
    }


def test_lambda_traces_what_it_received_and_what_arrived(tmp_path: Path) -> None:
    kinesis = FakeKinesis(lambda call, put: call == 1 and put["PartitionKey"] == "8")
    names: dict[str, Any] = {"kinesis": kinesis}
    exec(example(CONSUMERS, "A Lambda", tmp_path), names)  # noqa: S102 - our own page
    event = {"Records": [in_lambda(7), in_lambda(8)]}
    with pytest.raises(RuntimeError, match="again"):
        names["handler"](event, None)
    assert told(tmp_path) == [("m7", "received"), ("m8", "received"), ("m7", "sent")]
    names["handler"](event, None)
    assert sorted(told(tmp_path)[3:]) == sorted([(m, e) for m in ("m7", "m8") for e in EVENTS])
    assert {(line["shard_id"], line["location"]) for line in logged(tmp_path)} == {
        (SHARD, "router")
    }
    assert json.loads(kinesis.calls[0][0]["Data"])["message_id"] == "m7"
    names["place"].close()


EVENTS = ("received", "sent")


def told(folder: Path) -> list[tuple[str, str]]:
    lines = sorted(logged(folder), key=lambda line: int(line["session_seq"]))
    return [(line["message_id"], line["event"]) for line in lines]


def test_worker_has_its_traces_in_files_before_it_checkpoints(tmp_path: Path) -> None:
    sent: list[bytes] = []
    seen: list[list[tuple[str, str]]] = []
    names: dict[str, Any] = {"send_on": sent.append}
    exec(example(CONSUMERS, "A KCL worker", tmp_path), names)  # noqa: S102 - our own page
    worker = names["Enricher"]()
    worker.initialize(SimpleNamespace(shard_id=SHARD))
    records = [
        SimpleNamespace(binary_data=each["Data"], sequence_number=each["SequenceNumber"])
        for each in map(record, range(2))
    ]
    checkpointer = SimpleNamespace(checkpoint=lambda: seen.append(told(tmp_path)))
    worker.process_records(SimpleNamespace(records=records, checkpointer=checkpointer))
    assert seen == [[(f"m{n}", event) for n in range(2) for event in EVENTS]]
    assert sent == [record(n)["Data"] for n in range(2)]
    names["place"].close()


def test_filter_traces_what_it_leaves_out(tmp_path: Path) -> None:
    sent: list[dict[str, Any]] = []
    names: dict[str, Any] = {"send_on": sent.extend, "is_valid": lambda data: b"m1" in data}
    exec(example(CONSUMERS, "A filter", tmp_path), names)  # noqa: S102 - our own page
    names["pass_on"]([record(0), record(1)])
    assert told(tmp_path) == [
        *(("m0", "received"), ("m1", "received"), ("m0", "left_out"), ("m1", "sent")),
    ]
    assert sent == [record(1)]
    names["place"].close()


def test_place_that_splits_traces_what_came_in_and_what_was_made_of_it(tmp_path: Path) -> None:
    section = CONSUMERS.partition("\n## A place that splits or joins\n")[2].partition("\n## ")[0]
    [code] = shown("python", section)
    code = code.replace("s3://logs/traces", str(tmp_path))
    names: dict[str, Any] = {"kinesis": FakeKinesis()}
    exec(code.replace('boto3.client("kinesis")', "kinesis"), names)  # noqa: S102 - our own page
    place, lines = names["place"], names["lines"]
    data = [json.dumps({"order_id": "m7", "line": number}) for number in range(2)]
    place.received([record(7)])
    lines.put_records(
        StreamName="order-lines", Records=[{"Data": d, "PartitionKey": "7"} for d in data]
    )
    place.sent([record(7)])
    place.close()
    lines.close()
    assert told(tmp_path / "orders" / "splitter") == [("m7", event) for event in EVENTS]
    assert [line["parent_ids"] for line in logged(tmp_path / "order_lines")] == [["m7"]] * 2


def test_lines_are_taken_and_have_what_the_emitter_writes(tmp_path: Path) -> None:
    lines = "".join(shown("json", CONSUMERS))
    rows = [
        row
        for batch in json_batches(io.BytesIO(lines.encode()), "x", COLUMNS)
        for row in batch.to_pylist()
    ]
    assert [(row["message_id"], row["location"], row["fault"]) for row in rows] == [
        ("7f3e", "router", None)
    ] * 2
    names: dict[str, Any] = {"kinesis": FakeKinesis()}
    exec(example(CONSUMERS, "A Lambda", tmp_path), names)  # noqa: S102 - our own page
    names["handler"]({"Records": [in_lambda(0)]}, None)
    names["place"].close()
    written = logged(tmp_path)
    assert [json.loads(line)["event"] for line in lines.splitlines()] == list(EVENTS)
    assert all(set(json.loads(line)) <= set(written[0]) for line in lines.splitlines())
