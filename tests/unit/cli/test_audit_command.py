"""What `audit`, `watch` and `findings` refuse before Spark starts."""

import argparse
import threading
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.cli.findings_command import add_arguments
from shardaudit.cli.main import main
from shardaudit.cli.watch_command import locked_ledger
from shardaudit.model.config.settings import Settings, load_settings
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.tables.audit_tables import AUDITS
from shardaudit.model.tables.table import Table
from shardaudit.model.tables.watch_tables import SHARDS
from shardaudit.store.lock import warehouse_lock


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("audit --stream event", "did you mean events?"),
        ("audit --stream events --from 2026-11-20", "--from: found '2026-11-20'"),
        ("audit --stream events --as-of 2026-11-20T00:00:00", "time with a zone"),
        ("audit --stream events --as-of 0001-01-01T00:00:00Z", "from the year 2000 to 2199"),
        ("audit --stream events --as-of 9999-12-31T23:59:59Z", "from the year 2000 to 2199"),
        ("audit --stream events --from 2016-11-20T00:00:00Z", "at most 366 days"),
        (
            "audit --stream events --from 2026-11-20T00:00:00Z --to 2026-11-20T00:00:00Z",
            "wanted from before to",
        ),
        (
            "audit --stream events --to 2026-11-20T00:01:01Z --as-of 2026-11-20T00:00:00Z",
            "end of the window: found '2026-11-20T00:01:01+00:00', wanted at most "
            "2026-11-20T00:00:00+00:00: what is still to come would count as audited; leave the "
            "end out, or ask again when it is over",
        ),
        ("watch --stream event", "did you mean events?"),
        ("watch --stream events --as-of 2026-11-20T00:00:00", "time with a zone"),
        ("watch --stream events --as-of=", "--as-of: found ''"),
        ("findings list --stream event", "did you mean events?"),
        *(
            (
                f"findings list --stream events --gap s 2026-11-20T00:00:00Z {also}",
                "--gap: found '--kind or --state', wanted neither",
            )
            for also in ("--kind duplicated", "--state accepted")
        ),
        ("findings list --limit 0", "--limit: found 0"),
        ("findings accept --stream events --message-id x --reason=", "wanted a reason"),
        *(
            (
                f"findings accept --stream events {what} --from 2026-11-19T22:00:00Z "
                "--to 2196-11-20T06:00:00Z --reason mistyped",
                "--to: found '2196-11-20T06:00:00Z', wanted a time that is over: what is still to "
                "come would be complete whatever happens",
            )
            for what in ("--quiet", "--inconclusive")
        ),
    ],
)
def test_wrong_argument_ends_with_2_and_its_name(
    config: Path, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    assert main(["--config", str(config), *line.split()]) == ExitCode.USAGE
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("table", "at"), [(SHARDS, "observed_at"), (AUDITS, "as_of")])
def test_a_watch_of_before_somebody_looked_is_refused(
    config: Path, capsys: pytest.CaptureFixture[str], table: Table, at: str
) -> None:
    """What is known since then would count as known before: what stood still would be well."""
    settings = load_settings(config)
    tables = DeltaRs(settings.warehouse, settings.aws)
    looked = datetime(2026, 11, 20, 12, tzinfo=UTC)
    row = {"stream": "events", at: looked, "state": "ok", "status": "published"}
    failed = row | {at: looked + timedelta(hours=1), "state": None, "status": "failed"}
    tables.create(table)
    for key, said in (("x", row), ("y", failed)):  # of the ingest alone, or of no audit
        known = {name: value for name, value in said.items() if name in table.names}
        tables.upsert([dict.fromkeys(table.key, key) | known], table)
    line = "watch --stream events --as-of 2026-11-20T11:45:00Z"
    assert main(["--config", str(config), *line.split()]) == ExitCode.USAGE
    wanted = "wanted a time from 2026-11-20T12:00:00+00:00 on"
    assert f"--as-of: found '2026-11-20T11:45:00Z', {wanted}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line", ["audit --stream events", "backfill run --plan p", "dedupe run --plan p"]
)
def test_wrong_suite_ends_with_2_before_spark_or_the_lock(
    config: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    folder = config.with_name("mine")
    folder.mkdir()
    (folder / "traces.yaml").write_text("expectations:\n  - {}\n")
    config.write_text('expectations = "mine"\n' + config.read_text())
    assert main(["--config", str(config), *line.split()]) == ExitCode.USAGE
    assert (
        f"{folder}/traces.yaml:2: expectations.0.type: found 'nothing'" in capsys.readouterr().err
    )
    assert not config.with_name("lake").exists()


def test_message_ids_add_up() -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    line = "accept --stream events --message-id a b --message-id c --reason known"
    assert parser.parse_args(line.split()).message_id == ["a", "b", "c"]


def test_run_ends_with_75_when_another_does_not_give_the_warehouse_back(
    config: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shardaudit.cli.session.AN_AUDIT", timedelta(seconds=0.1))
    settings = Settings(warehouse=str(tmp_path / "lake"), streams={})
    with warehouse_lock(settings, owner="tonight's audit"):
        ended = main(["--config", str(config), "ingest", "--stream", "events"])
    assert ended == ExitCode.RETRY
    said = capsys.readouterr().err
    assert said.count("waits for tonight's audit") == 1
    assert "is held by tonight's audit" in said


@pytest.mark.parametrize(("owner", "is_waited_for"), [("watch b", True), ("audit b", False)])
def test_a_watch_waits_for_the_ledger_of_another_streams_watch_and_for_no_audit(
    tmp_path: Path, owner: str, is_waited_for: bool
) -> None:
    settings = Settings(warehouse=str(tmp_path / "lake"), streams={})
    with ExitStack() as stack, ExitStack() as other:
        other.enter_context(warehouse_lock(settings, owner=owner))
        ends = threading.Timer(0.3, other.close)
        ends.start()
        ledger, busy = locked_ledger(stack, settings, "watch a")
        ends.join()
    assert (ledger is not None, busy is None) == (is_waited_for, is_waited_for)
