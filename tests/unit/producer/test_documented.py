"""docs/producers.md: what it shows is what the ingest takes."""

import io
import json
import re
import tomllib
from pathlib import Path
from typing import Any  # of what an example defines

from shardaudit.adapters.files.json_traces import json_batches
from shardaudit.model.input_columns import TRACE_COLUMNS
from shardaudit.producer import traced
from tests.unit.producer.pages import PRODUCERS, example, shown
from tests.unit.producer.puts import ROOT, FakeKinesis, health, logged, records

COLUMNS = {name: name for name in TRACE_COLUMNS}


def test_lines_are_taken_as_the_page_says() -> None:
    trace, told, of_kpl = shown("json", PRODUCERS)
    lines = (trace + told + of_kpl).encode()
    rows = [row for b in json_batches(io.BytesIO(lines), "x", COLUMNS) for row in b.to_pylist()]
    assert [(row["line"], row["message_id"], row["fault"]) for row in rows] == [
        (1, "7f3e", None),
        (2, None, "gap: 12 traces were dropped by the producer"),
        (4, "a1", None),
        (5, "a2", None),
    ]
    assert rows[1]["fault"] in PRODUCERS


def test_every_key_of_a_trace_is_explained() -> None:
    table = PRODUCERS.partition("| key | |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", table)) >= {*TRACE_COLUMNS, "event"}


def test_every_key_of_health_is_explained(tmp_path: Path) -> None:
    with traced(FakeKinesis(), str(tmp_path), producer_id="p") as producer:
        producer.put_records(StreamName="events", Records=records(1))
    [line] = health(tmp_path)
    table = PRODUCERS.partition("| key | of a line of health |")[2].partition("\n\n")[0]
    assert re.findall(r"`(\w+)`", re.sub("`(session_seq|flushed)`", "", table)) == [
        *line["health"],
        *(key for key in line if key != "health"),
    ]
    example = json.loads(shown("json", PRODUCERS)[1].splitlines()[1])
    assert (example.keys(), example["health"].keys()) == (line.keys(), line["health"].keys())


def test_two_lines_are_enough(tmp_path: Path) -> None:
    kinesis = FakeKinesis()
    exec(example(PRODUCERS, "boto3: two lines", tmp_path), {"kinesis": kinesis})  # noqa: S102 - our own page
    assert len(logged(tmp_path)) == len(kinesis.calls) == 1


def test_lambda_has_its_traces_in_files_when_an_invocation_ends(tmp_path: Path) -> None:
    names: dict[str, Any] = {"kinesis": FakeKinesis()}
    exec(example(PRODUCERS, "A Lambda", tmp_path), names)  # noqa: S102 - our own page
    for order in range(2):
        names["handler"]({"order": str(order), "price": 1.5}, None)
        assert len(logged(tmp_path)) == order + 1
    names["kinesis"].close()


def test_asyncio_puts_in_threads_and_each_record_is_traced_once(tmp_path: Path) -> None:
    kinesis = FakeKinesis()
    batches = [records(5, first=5 * number) for number in range(4)]
    exec(example(PRODUCERS, "asyncio", tmp_path), {"kinesis": kinesis, "batches": batches})  # noqa: S102 - our own page
    assert len(kinesis.calls) == len(batches)
    assert sorted(line["session_seq"] for line in logged(tmp_path)) == list(range(20))


def test_configuration_of_the_readme_takes_the_names_of_this_log() -> None:
    [configuration, *_] = shown("toml", (ROOT / "README.md").read_text())
    assert "columns" not in tomllib.loads(configuration)["streams"]["events"]["traces"]


def test_the_tutorial_shows_the_same_two_lines() -> None:
    [code] = shown("python", (ROOT / "docs" / "tutorial.md").read_text())
    assert code in shown("python", PRODUCERS)
