"""A full run: every command, what Airflow adds to them, a producer and a place behind it."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from shardaudit.consumer import trace
from shardaudit.producer import traced
from tests.aws.in_turn import InTurn
from tests.aws.recorded_world import OLDER, WAREHOUSE, World

STREAM = ("--stream", "events")


@dataclass(slots=True)
class Run:
    """Commands in turn on one engine: in the one process, or each in one of its own."""

    made: World
    engine: str = "spark"
    process: InTurn | None = None

    def command(self, actor: str, *words: str, **settings: str) -> Any:  # Any: JSON
        """What the command says of its work."""
        with self.made.recorded(actor, **settings) as (config, _):
            line = ["--config", str(config), "--engine", self.engine, "--json", *words]
            with ExitStack() as stack:
                own = InTurn(self.made.environment())
                return (self.process or stack.enter_context(own)).call(line)

    def airflow(self, actor: str, who: str, *words: str) -> None:
        """What Airflow's processes do besides the commands."""
        with self.made.recorded(actor) as (config, _):
            subprocess.run(
                [sys.executable, "-m", "tests.aws.airflow_steps", who, *words],
                env=self.made.environment() | {"SHARDAUDIT_CONFIG": str(config)},
                check=True,
                capture_output=True,
            )


@contextmanager
def embedded(made: World) -> Iterator[Run]:
    """Commands on the embedded engine, in one process: Apache Spark's do not run so."""
    with InTurn(made.environment()) as process:
        yield Run(made, "embedded", process)


def looked_at(run: Run) -> None:
    """Every command but the repairs, what Airflow adds to them, and the upkeep."""
    run.command("doctor", "doctor")
    logs = sorted((run.made.folder / "s3" / "logs" / "traces").iterdir())
    run.command("lint-traces", "lint-traces", *STREAM, f"s3a://logs/traces/{logs[0].name}")
    run.command("ingest", "ingest", *STREAM)
    audit = judged(run)
    run.command("ingest", "ingest", *STREAM)  # deletes the lock of the run before it
    run.command("backfill-plan", "backfill", "plan", *STREAM, "--request", "asked")
    run.airflow("airflow-steps", "worker", audit["audit_id"])
    run.airflow("page", "page")
    run.command("report", "report", *STREAM, "--out", str(run.made.folder / "report.html"))
    run.command("report", "statistics", *STREAM)
    _age_removed_files(run.made)
    run.command("maintain", "maintain")
    run.command("migrate", "migrate", warehouse=OLDER)
    run.command("migrate", "migrate", warehouse=OLDER)


def judged(run: Run, **settings: str) -> Any:  # Any: JSON
    """An audit and a watch that find new traces, and a finding that somebody accepts."""
    told(run.made)
    audit = run.command("audit", "audit", *STREAM, **settings)
    told(run.made)
    run.command("watch", "watch", *STREAM, **settings)
    missing = ("--kind", "missing")
    lost = run.command("findings-list", "findings", "list", *STREAM, *missing, **settings)
    words = ("--message-id", lost["findings"][0]["message_id"], "--reason", "a test")
    run.command("findings-accept", "findings", "accept", *STREAM, *words, **settings)
    return audit


def repaired(run: Run) -> None:
    """Both repairs of what `looked_at` left; Apache Spark does them, whatever plans them."""
    plan = run.command("backfill-plan", "backfill", "plan", *STREAM)
    dedupe = run.command("dedupe-plan", "dedupe", "plan", *STREAM)
    told(run.made)
    _approved(run.made, "backfill-run", "backfill", plan)
    told(run.made)
    _approved(run.made, "dedupe-run", "dedupe", dedupe)
    run.command("dedupe-purge", "dedupe", "purge", "--plan", dedupe["plan_id"])


def landed_by(run: Run, mode: str, **settings: str) -> None:
    """A backfill by another mode than the merge, in a warehouse of its own."""
    own = {"warehouse": mode, **settings}
    run.command(f"audit before {mode}", "audit", *STREAM, **own)
    plan = run.command(f"plan of {mode}", "backfill", "plan", *STREAM, **own)
    _approved(run.made, mode, "backfill", plan, **own)


def _approved(
    made: World,
    actor: str,
    command: str,
    plan: Mapping[str, str],
    **settings: str,
) -> None:
    words = (command, "run", "--plan", plan["plan_id"], "--approve-as", "ann")
    Run(made).command(actor, *words, **settings)


def told(made: World) -> None:
    """A producer puts three records, and a place behind it receives one; both trace to S3."""
    at = datetime.now(UTC).isoformat()
    content = json.dumps({"message_id": "m", "sent_at": at}).encode()
    with (
        made.recorded("producer") as (_, urls),
        made.client("kinesis", urls["kinesis"]) as kinesis,
        made.client("s3", urls["s3"]) as s3,
        traced(kinesis, "s3://logs/traces/", producer_id="p", s3=s3) as producer,
    ):
        record = {"Data": content, "PartitionKey": "k"}
        ack = producer.put_record(StreamName="events", **record)
        producer.put_records(StreamName="events", Records=[record, record])
    received = {"Data": content, **{name: ack[name] for name in ("ShardId", "SequenceNumber")}}
    names = {"stream": "events", "location": "router", "producer_id": "r"}
    with (
        made.recorded("consumer") as (_, urls),
        made.client("s3", urls["s3"]) as s3,
        trace("s3://logs/traces/", **names, s3=s3) as place,  # type: ignore[arg-type] # texts all
    ):
        place.received([received])


def _age_removed_files(made: World) -> None:
    """What was removed from the table `findings` was removed a month ago: upkeep deletes it."""
    month_ago = (datetime.now(UTC) - timedelta(days=30)).timestamp() * 1000
    prefix = f"{WAREHOUSE}/findings/_delta_log/"
    with made.client("s3", made.s3.url) as s3:
        for found in s3.list_objects_v2(Bucket="tables", Prefix=prefix)["Contents"]:
            text = s3.get_object(Bucket="tables", Key=found["Key"])["Body"].read().decode()
            aged = re.sub(r'("deletionTimestamp":)\d+', rf"\g<1>{month_ago:.0f}", text)
            s3.put_object(Bucket="tables", Key=found["Key"], Body=aged.encode())
