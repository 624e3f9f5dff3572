import argparse
from datetime import timedelta
from importlib.metadata import Distribution, version
from pathlib import Path
from unittest.mock import Mock

import boto3
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.cli.command import CommandContext
from shardaudit.cli.doctor import port_line, pyspark_line, run
from shardaudit.cli.doctor_line import Line
from shardaudit.model.config.parts import Aws, Embedded
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.input_columns import REQUIRED, SINK_COLUMNS
from shardaudit.model.tables.audit_tables import AUDITS
from shardaudit.model.waiting import Waiting
from shardaudit.model.window import Window
from shardaudit.report.plain import instant
from shardaudit.report.progress import NO_PROGRESS
from shardaudit.simulate.stand_in.server import StandIn
from tests.builders import T0
from tests.configurations import LEAST
from tests.unit.simulate.kinesis import Kinesis


def checked(
    config: Path, *, engine: str | None = None, size: bool = False
) -> tuple[dict[str, Line], ExitCode]:
    context = CommandContext(config=config, progress=lambda _: NO_PROGRESS, engine=engine)
    reply = run(argparse.Namespace(fetch_jars=False, size=size), context)
    assert isinstance(reply.document, dict)
    return {line.check: line for line in reply.document["checks"]}, reply.exit_code


def test_wrong_configuration_is_one_line_and_ends_with_2(tmp_path: Path) -> None:
    lines, exit_code = checked(tmp_path / "none.toml")
    assert lines["configuration"].level == "fail"
    assert "warehouse" not in lines
    assert exit_code is ExitCode.USAGE


def test_files_are_counted_and_no_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    config, day = tmp_path / "shardaudit.toml", tmp_path / "traces" / "2026" / "11"
    config.write_text(LEAST)
    day.mkdir(parents=True)
    traces = checked(config)[0]["events: traces"]
    assert (traces.level, traces.found) == ("warn", f"{tmp_path}/traces holds 0 files")


def test_absent_places_fail_with_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    config = tmp_path / "shardaudit.toml"
    config.write_text(LEAST.replace("file:///sink", "sink"))
    lines, exit_code = checked(config)
    assert lines["warehouse"].level == "ok"
    assert lines["expectations"].level == "ok"
    assert lines["events: traces"].found == f"there is no folder {tmp_path}/traces"
    assert lines["events: sink"].found == f"there is no Delta table {tmp_path}/sink"
    assert lines["events: sink"].cure
    assert lines["events: cells"].found == "bucket 60s, sample_rate 1"
    health = lines["events: health"]
    assert (health.level, health.found) == ("warn", "never read, never audited, never watched")
    assert exit_code is ExitCode.FAILED


@pytest.mark.parametrize(
    ("columns", "keys", "level", "found"),
    [
        (SINK_COLUMNS, "", "ok", "with the columns that are wanted"),
        (
            SINK_COLUMNS[:-1],
            "",
            "ok",
            "with the columns that are wanted",
        ),  # nobody needs arrived_at
        (REQUIRED, "", "warn", "without shard_id (for shard_id), sequence_number"),
        (REQUIRED, 'without = ["shard_id", "sent_at", "sequence_number"]', "ok", "are wanted"),
        (("message_id",), "", "fail", "landed_at (for landed_at)"),
        (SINK_COLUMNS, 'columns = { arrived_at = "at" }', "fail", "no column at (for arrived_at)"),
    ],
)
def test_sink_is_told_what_it_lacks(  # noqa: PLR0917 - a table of cases
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    columns: tuple[str, ...],
    keys: str,
    level: str,
    found: str,
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    write_deltalake(str(tmp_path / "sink"), pa.table({name: ["a"] for name in columns}))
    config = tmp_path / "shardaudit.toml"
    sink = f'{{ path = "sink"{", " + keys if keys else ""} }}'
    config.write_text(LEAST.replace('{ path = "file:///sink" }', sink))
    line = checked(config)[0]["events: sink"]
    assert (line.level, found in line.found) == (level, True), line.found


@pytest.fixture
def with_kinesis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: StandIn) -> Path:
    """The configuration of a stream `s` of the stand-in, said to keep its records for two days."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    config = tmp_path / "shardaudit.toml"
    text = LEAST.replace('"events"', '"s"').replace("traces =", 'retention = "48h"\ntraces =')
    config.write_text(f'{text}[aws]\nregion = "us-east-1"\nendpoint_url = "{server.url}"\n')
    return config


@pytest.mark.parametrize(("hours", "level"), [(48, "ok"), (24, "warn"), (168, "warn")])
def test_another_retention_than_the_configured_one_is_a_warning(
    with_kinesis: Path, kinesis: Kinesis, hours: int, level: str
) -> None:
    kinesis.create(hours=hours)
    assert checked(with_kinesis)[0]["events: Kinesis"].level == level


def test_a_stream_is_asked_by_one_client(
    with_kinesis: Path, kinesis: Kinesis, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinesis.create(hours=48)
    client = Mock(wraps=boto3.client)
    monkeypatch.setattr(boto3, "client", client)
    lines, _ = checked(with_kinesis)
    assert (lines["events: Kinesis"].level, client.call_count) == ("ok", 1)


def test_a_retention_that_is_too_short_for_a_repair_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    config = tmp_path / "shardaudit.toml"
    for hours, level in (("24h", "warn"), ("168h", "ok")):
        text = LEAST.replace("traces =", f'retention = "{hours}"\ntraces =')
        config.write_text(text)
        lines, _ = checked(config)
        assert lines["events: time to repair"].level == level


def test_java_is_missing_when_java_home_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    lines, _ = checked(tmp_path / "none.toml")
    assert lines["Java"].level == "fail"
    assert "openjdk-17" in lines["Java"].cure


@pytest.mark.parametrize(
    ("engine", "level", "healthy"), [("spark", "fail", 1), ("embedded", "warn", 0)]
)
def test_java_is_wanted_by_apache_spark_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, level: str, healthy: int
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (tmp_path / "shardaudit.toml").write_text('warehouse = "lake"\n[streams]\n')
    lines, exit_code = checked(tmp_path / "shardaudit.toml", engine=engine)
    assert lines["Java"].level == level
    assert ("only repairs need it" in lines["Java"].cure) == (engine == "embedded")
    assert "openjdk-17" in lines["Java"].cure
    assert exit_code == healthy


def test_engine_is_told_with_its_version_and_what_it_may_take(tmp_path: Path) -> None:
    config = tmp_path / "shardaudit.toml"
    config.write_text('warehouse = "lake"\n[embedded]\nmemory = "1536MiB"\n[streams]\n')
    spark, _ = checked(config)
    assert (spark["engine"].level, spark["engine"].found) == (
        "ok",
        f"Apache Spark {version('pyspark')}",
    )
    assert "engine's port" not in spark
    assert "light commands" not in checked(config, engine="embedded")[0]
    embedded, _ = checked(config, engine="embedded")
    wanted = f"pysail {version('pysail')} (embedded), within 1.5 GiB of memory"
    assert (embedded["engine"].level, embedded["engine"].found) == ("ok", wanted)


@pytest.mark.parametrize(
    ("asked", "keys", "found"),
    [
        (None, "", f"pysail {version('pysail')} (embedded), if they read little"),
        (None, '"spark.master" = "yarn"', f"Apache Spark {version('pyspark')}, as [spark] names"),
        ("spark", "", f"Apache Spark {version('pyspark')}"),
    ],
)
def test_what_runs_the_light_commands_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: str | None,
    keys: str,
    found: str,
) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    config = tmp_path / "shardaudit.toml"
    tables = f"[embedded]\nshared_machine = true\n[spark]\n{keys}\n[streams]\n"
    config.write_text(f'warehouse = "lake"\n{tables}')
    line = checked(config, engine=asked)[0]["light commands"]
    wanted = f"backfill plan, dedupe plan, findings accept, findings list, watch: {found}"
    assert (line.level, line.found.startswith(wanted)) == ("ok", True), line.found


@pytest.mark.parametrize(
    ("others", "accepted", "level", "found"),
    [
        ([], False, "ok", "nobody else"),
        (["ann"], False, "fail", "no password, and other people can log in here: ann"),
        (["a", "b", "c", "d"], False, "fail", "log in here: a, b, c, …"),
        (["ann"], True, "ok", "ann; embedded.shared_machine accepts that"),
    ],
)
def test_port_is_a_fault_when_others_can_log_in_and_nobody_accepted_that(
    others: list[str], accepted: bool, level: str, found: str
) -> None:
    line = port_line(Embedded(shared_machine=accepted), others)
    assert (line.level, found in line.found) == (level, True)
    assert ("embedded.shared_machine = true" in line.cure) == (level == "fail")


def pyspark_of(site: Path, *, installed: str, files: str) -> Distribution:
    """A pyspark that pip takes for one version, with the files of another."""
    (site / "pyspark").mkdir()
    (site / "pyspark" / "version.py").write_text(f"__version__ = '{files}'\n")
    noted = site / f"pyspark-{installed}.dist-info"
    noted.mkdir()
    (noted / "METADATA").write_text(f"Metadata-Version: 2.1\nName: pyspark\nVersion: {installed}\n")
    return Distribution.at(noted)


def test_another_package_s_files_in_pyspark_s_folder_are_told_with_the_cure(tmp_path: Path) -> None:
    [line] = pyspark_line(pyspark_of(tmp_path, installed="4.1.4", files="4.2.0"))
    assert (line.check, line.level) == ("pyspark", "fail")
    assert (
        line.found == "4.1.4 is installed, but its files are of 4.2.0: pyspark-client has the same"
    )
    assert line.cure == "`pip install --force-reinstall --no-deps pyspark==4.1.4`"


def test_nothing_is_said_of_a_pyspark_that_is_whole(tmp_path: Path) -> None:
    assert list(pyspark_line(pyspark_of(tmp_path, installed="4.1.4", files="4.1.4"))) == []


def test_size_is_told_where_it_was_asked_for(tmp_path: Path) -> None:
    config = tmp_path / "shardaudit.toml"
    config.write_text(LEAST)
    assert "events: size" not in checked(config)[0]
    found = checked(config, size=True)[0]["events: size"]
    assert (found.level, found.cure) == ("ok", "")
    assert "never audited yet" in found.found


def test_links_among_traces_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    config, traces = tmp_path / "shardaudit.toml", tmp_path / "traces"
    config.write_text(LEAST)
    traces.mkdir()
    (traces / "a.jsonl").touch()
    assert checked(config)[0]["events: traces"].level == "ok"
    (traces / "b").symlink_to(tmp_path)
    line = checked(config)[0]["events: traces"]
    told = f"links in it are not followed (1, as {traces}/b): put the files themselves there"
    assert (line.level, line.found.endswith(told)) == ("warn", True), line.found


def test_what_no_audit_looks_at_any_more_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    config = tmp_path / "shardaudit.toml"
    config.write_text(LEAST)
    assert checked(config)[0]["events: late minutes"].level == "ok"
    tables = DeltaRs(str(tmp_path / "lake"), Aws())
    tables.create(AUDITS)
    lost = Waiting(given_up=((Window(T0, T0 + timedelta(minutes=1)), T0 + timedelta(days=1)),))
    row: dict[str, object] = {
        "audit_id": "a",
        "stream": "events",
        "status": "published",
        "waiting": lost.as_json(),
    }
    tables.upsert([row | dict.fromkeys(("window_end", "as_of"), T0 + timedelta(days=2))], AUDITS)
    line = checked(config)[0]["events: late minutes"]
    assert line.level == "warn"
    assert f"--from {instant(T0)} --to {instant(T0 + timedelta(minutes=1))}`" in line.found
