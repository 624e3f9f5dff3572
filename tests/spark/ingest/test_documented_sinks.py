"""docs/sinks.md: what it shows makes rows that an audit takes, and finds what is not among them."""

import base64
import json
import tomllib
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from typing import Any  # of what an example defines

import pytest
from pyspark.sql import functions as F

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.job import audit
from shardaudit.model.config.parts import Sink
from shardaudit.model.retention import Retention
from shardaudit.model.window import Window
from shardaudit.report.summary import AuditReport
from tests.builders import NOW, T0, Line, trace_line, write_parquet
from tests.spark.lake import Lake
from tests.spark.ungated import ungated
from tests.unit.producer.pages import shown
from tests.unit.producer.puts import ROOT

PAGE = (ROOT / "docs" / "sinks.md").read_text()
SENT, LOST, TWICE = 20, 7, 4
LANDED_AT = T0 + timedelta(minutes=1)
RECORD_DDL = (
    "data binary, shardId string, sequenceNumber string, approximateArrivalTimestamp timestamp"
)


def example(heading: str, language: str = "python") -> str:
    [code] = shown(language, PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0])
    return code


class Clock(datetime):
    """When all of it is written: soon after it was sent."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "Clock":
        return cls.fromisoformat(LANDED_AT.isoformat()).astimezone(tz)


def names(heading: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    exec(example(heading), found)  # noqa: S102 - our own page
    found["datetime"] = Clock
    return found


def payloads() -> list[tuple[bytes, Line]]:
    """What the consumer gets: all but one message, and one of them twice."""
    order = [n for n in range(SENT) if n != LOST] + [TWICE]
    lines = [trace_line(n) for n in order]
    return [
        (
            json.dumps({k: line[k] for k in ("message_id", "sent_at")} | {"price": 1.5}).encode(),
            line,
        )
        for line in lines
    ]


def by_spark(lake: Lake) -> None:
    made = names("Spark Structured Streaming")
    rows = [
        (bytearray(data), line["shard_id"], line["sequence_number"], T0)
        for data, line in [*payloads(), (b"no JSON", trace_line(99))]
    ]
    records = lake.spark.createDataFrame(rows, RECORD_DDL)
    landed = made["rows"](records).withColumn("landed_at", F.lit(LANDED_AT))
    landed.write.format("delta").mode("append").save(str(lake.sink))


def by_firehose(lake: Lake) -> None:
    handler = names("Firehose")["handler"]
    lake.sink_format = tomllib.loads(example("Firehose", "toml"))["streams"]["orders"]["sink"][
        "format"
    ]
    records = [
        {
            "recordId": str(n),
            "data": base64.b64encode(data).decode(),
            "kinesisRecordMetadata": {
                "shardId": line["shard_id"],
                "sequenceNumber": line["sequence_number"],
            },
        }
        for n, (data, line) in enumerate([*payloads(), (b"no JSON", trace_line(99))])
    ]
    *good, bad = handler({"records": records}, None)["records"]
    assert bad == {"recordId": "20", "result": "ProcessingFailed", "data": records[-1]["data"]}
    assert [one["recordId"] for one in good] == [str(n) for n in range(SENT)]
    rows = [json.loads(base64.b64decode(one["data"])) for one in good]
    write_parquet(lake.sink / "2026/11/20/12" / "orders-1.parquet", rows)


def by_own_code(lake: Lake) -> None:
    row_of = names("KCL, a Lambda, any code of yours")["row_of"]
    lake.sink_format = "parquet"
    rows = [row_of(data, line["shard_id"], line["sequence_number"]) for data, line in payloads()]
    write_parquet(lake.sink / "a.parquet", rows)


def audited(lake: Lake) -> AuditReport:
    lake.ingest()
    request = AuditRequest(
        lake.name,
        lake.stream,
        Window(T0, T0 + lake.stream.bucket),
        NOW,
        Retention(lake.stream.audit_window),
    )
    return audit(lake.warehouse, request, ungated(), now=NOW)


@pytest.mark.parametrize(
    "landed",
    # The page's times are as Apache Spark reads them.
    [pytest.param(by_spark, marks=pytest.mark.apache_spark), by_firehose, by_own_code],
)
def test_rows_of_the_page_are_audited(spark_lake: Lake, landed: Callable[[Lake], None]) -> None:
    lake = spark_lake
    lake.log("a.jsonl", map(trace_line, range(SENT)))
    landed(lake)
    counts = audited(lake).counts
    told = {name: counts[name] for name in ("sent", "missing", "duplicated", "untraced")}
    assert told == {"sent": SENT, "missing": 1, "duplicated": 1, "untraced": 0}


def test_configuration_of_the_page_is_taken() -> None:
    given = tomllib.loads(example("Firehose", "toml"))["streams"]["orders"]["sink"]
    assert Sink.model_validate(given).format == "parquet"
