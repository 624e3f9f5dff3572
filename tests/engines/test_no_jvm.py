"""On the embedded engine nothing needs Java; on Apache Spark nothing needs the embedded engine.

Where both can be imported, commands are forks of a process that has done so.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from shardaudit.adapters.engine.light import MOST_BYTES
from shardaudit.ingest.new_bytes import bytes_to_ingest
from shardaudit.model.config.parts import ENGINE
from shardaudit.model.config.settings import load_settings
from tests.engines.commands import AS_OF, FAULTS, STREAM, WINDOW, of, run, without_java
from tests.faults.forks import Forks
from tools.demo_result import match_planted


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    """A process that has imported what commands import."""
    with Forks() as forks:
        yield forks


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulation and its configuration, made without Java."""
    folder = tmp_path_factory.mktemp("lake") / "events"
    made = ["simulate", "files", "--out", str(folder), "--messages", "3000", *FAULTS]
    assert run(made, without_java(folder.parent)).returncode == 0
    return folder


@pytest.fixture(scope="module")
def audited(forks: Forks, lake: Path) -> dict[str, object]:
    """The first audit's answer."""
    done = forked(forks, lake, "audit", *STREAM, *WINDOW, *AS_OF, "--json")
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def forked(forks: Forks, lake: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """A command where there is no Java."""
    there = without_java(lake.parent)
    return forks.run(of(lake, *words), there, said=lake.parent / "said")


def without_pysail(folder: Path) -> dict[str, str]:
    """An environment in which `import pysail` fails."""
    broken = folder / "broken" / "pysail"
    broken.mkdir(parents=True, exist_ok=True)
    (broken / "__init__.py").write_text("raise ImportError('no wheel for this machine')\n")
    path = os.pathsep.join([str(broken.parent), os.environ.get("PYTHONPATH", "")])
    # What the tests' own embedded session has set would reach Apache Spark in the child.
    kept = {n: v for n, v in os.environ.items() if n != "SPARK_CONNECT_MODE_ENABLED"}
    return kept | {"PYTHONPATH": path}


def test_what_was_planted_is_found_when_there_is_no_java(audited: dict[str, object]) -> None:
    counts = audited["counts"]
    assert isinstance(counts, dict)
    assert (counts["missing"], counts["duplicated"], counts["untraced"]) == (5, 3, 2)


@pytest.mark.usefixtures("audited")
def test_each_finding_is_as_it_was_planted_to_the_deadline(lake: Path) -> None:
    found = DeltaTable(str(lake / "warehouse" / "findings")).to_pyarrow_table().to_pylist()
    comparison = match_planted(pq.read_table(lake / "planted.parquet").to_pylist(), found)
    assert comparison.is_equal, comparison


@pytest.mark.parametrize(
    "words",
    [
        ["ingest", *STREAM],
        ["watch", *STREAM, *AS_OF],
        ["findings", "list", *STREAM],
        ["backfill", "plan", *STREAM, *AS_OF],
        ["dedupe", "plan", *STREAM],
        ["maintain"],
        ["audit", *STREAM, *WINDOW, *AS_OF],
    ],
    ids=" ".join,
)
def test_command_works_when_there_is_no_java(
    forks: Forks, lake: Path, audited: dict[str, object], words: list[str]
) -> None:
    assert audited
    done = forked(forks, lake, *words, "--json")
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) is not None


@pytest.mark.parametrize(
    "words",
    [["findings", "list"], ["backfill", "plan", *STREAM], ["dedupe", "plan", *STREAM]],
    ids=" ".join,
)
def test_that_nothing_is_found_is_no_news_before_the_first_audit(
    forks: Forks, lake: Path, tmp_path: Path, words: list[str]
) -> None:
    new = Path(shutil.copytree(lake, tmp_path / "new", ignore=lambda *_: ["warehouse"]))
    said = json.loads(forked(forks, new, *words, "--json").stdout)["notes"]
    assert said == ["nothing is known of events: no audit of it was published yet"]


def test_an_audit_that_reads_nothing_new_says_so(
    forks: Forks, lake: Path, audited: dict[str, object]
) -> None:
    assert not any("nothing was ingested" in note for note in audited["notes"])  # type: ignore[attr-defined] # JSON
    words = ["audit", *STREAM, *WINDOW, *AS_OF, "--no-ingest", "--json"]
    said = json.loads(forked(forks, lake, *words).stdout)
    assert said["notes"][0].startswith("nothing was ingested for this audit")


def test_findings_are_accepted_when_there_is_no_java(
    forks: Forks, lake: Path, audited: dict[str, object]
) -> None:
    assert audited
    listed = forked(forks, lake, "findings", "list", *STREAM, "--json")
    message_id = json.loads(listed.stdout)["findings"][0]["message_id"]
    words = ["findings", "accept", *STREAM, "--message-id", message_id, "--reason", "a test"]
    done = forked(forks, lake, *words, "--json")
    assert json.loads(done.stdout)["accepted"] == 1, done.stderr[-2000:]


def test_a_shard_that_is_none_was_never_quiet(
    forks: Forks, lake: Path, audited: dict[str, object]
) -> None:
    assert audited
    words = ["findings", "accept", *STREAM, "--quiet", *WINDOW, "--shard=shardId-O"]
    done = forked(forks, lake, *words, "--reason", "a test")
    assert done.returncode == 2
    assert "--shard: found 'shardId-O', wanted a shard of events" in " ".join(done.stderr.split())
    # What rows without a shard and a trace are told on, as an audit's advice has it.
    words[4:] = ["--inconclusive", *WINDOW, "--shard=(unknown)", "--reason", "a test"]
    assert forked(forks, lake, *words).returncode == 0


def test_report_is_written_when_there_is_no_java(
    forks: Forks, lake: Path, audited: dict[str, object], tmp_path: Path
) -> None:
    assert audited
    page = tmp_path / "events.html"
    done = forked(forks, lake, "report", *STREAM, "--out", str(page))
    assert done.returncode == 0, done.stderr[-2000:]
    assert "shardId-" in page.read_text()


@pytest.fixture(scope="module")
def set_to_spark(lake: Path, audited: dict[str, object]) -> Path:
    """A configuration of the audited lake that says Apache Spark."""
    assert audited
    text = (lake / "shardaudit.toml").read_text()
    file = lake / "spark.toml"
    # Whoever else has an account where the tests run.
    alone = "[embedded]\nshared_machine = true\n"
    file.write_text(text.replace('engine = "embedded"', 'engine = "spark"') + alone)
    return file


def by_file(
    forks: Forks, config: Path, *words: str, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """A command where there is no Java and, unless it is given, no engine in the environment."""
    there = without_java(config.parent.parent)
    del there[ENGINE]
    line = ["--config", str(config), *words]
    return forks.run(line, there | environment, said=config.with_name("said"))


@pytest.mark.parametrize(
    "words",
    [
        ["watch", *STREAM, *AS_OF],
        ["backfill", "plan", *STREAM, *AS_OF],
        ["dedupe", "plan", *STREAM],
        ["findings", "accept", *STREAM, "--quiet", *WINDOW, "--reason", "a test"],
    ],
    ids=" ".join,
)
def test_light_command_works_and_says_on_what_when_apache_spark_is_set_and_there_is_no_java(
    forks: Forks, set_to_spark: Path, words: list[str]
) -> None:
    done = by_file(forks, set_to_spark, *words, "--json")
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout)
    assert answer["engine"].startswith("pysail")
    assert answer["engine_because"].startswith("it reads little")
    assert f"runs on the engine embedded: {answer['engine_because']}" in done.stderr
    said = by_file(forks, set_to_spark, *words).stdout
    assert f"• on {answer['engine']}: {answer['engine_because']}" in said


def test_findings_are_accepted_when_apache_spark_is_set_and_there_is_no_java(
    forks: Forks, set_to_spark: Path
) -> None:
    listed = by_file(
        forks, set_to_spark, "findings", "list", *STREAM, "--state=open", "--json"
    ).stdout
    message_id = json.loads(listed)["findings"][0]["message_id"]
    words = ["findings", "accept", *STREAM, "--message-id", message_id, "--reason", "a test"]
    answer = json.loads(by_file(forks, set_to_spark, *words, "--json").stdout)
    assert (answer["accepted"], answer["engine"].partition(" ")[0]) == (1, "pysail")


@pytest.mark.parametrize("words", [["audit", *WINDOW], ["watch", "--engine=spark"]], ids=" ".join)
def test_apache_spark_is_started_when_it_is_set_or_asked_for(
    forks: Forks, set_to_spark: Path, words: list[str]
) -> None:
    done = by_file(forks, set_to_spark, *words, *STREAM, *AS_OF)
    assert done.returncode == 1
    assert "Java" in done.stderr


def test_watch_starts_apache_spark_when_the_environment_asks_for_it(
    forks: Forks, set_to_spark: Path
) -> None:
    done = by_file(forks, set_to_spark, "watch", *STREAM, *AS_OF, SHARDAUDIT_ENGINE="spark")
    assert done.returncode == 1
    assert "Java" in done.stderr


def test_watch_starts_apache_spark_when_there_is_much_to_ingest(
    forks: Forks, set_to_spark: Path
) -> None:
    settings = load_settings(set_to_spark)
    assert bytes_to_ingest(settings, "events") == 0
    big = set_to_spark.parent / "traces" / "big.jsonl"
    try:
        with big.open("wb") as file:
            file.truncate(MOST_BYTES + 1)  # of holes
        assert bytes_to_ingest(settings, "events") == MOST_BYTES + 1
        done = by_file(forks, set_to_spark, "watch", *STREAM, *AS_OF)
    finally:
        big.unlink()
    assert done.returncode == 1
    assert "Java" in done.stderr


def test_audit_says_what_to_set_when_the_embedded_engine_cannot_be_imported(lake: Path) -> None:
    words = of(lake, "audit", *STREAM, *WINDOW, *AS_OF, "--engine", "embedded")
    done = run(words, without_pysail(lake.parent))
    assert done.returncode == 2
    assert 'wanted "spark", as pysail cannot be imported here' in done.stderr


@pytest.mark.drill
def test_apache_spark_audits_when_the_embedded_engine_cannot_be_imported(
    lake: Path, tmp_path: Path
) -> None:
    shutil.copytree(lake, tmp_path / "events", ignore=shutil.ignore_patterns("warehouse"))
    words = of(tmp_path / "events", "audit", *STREAM, *WINDOW, *AS_OF, "--engine", "spark")
    done = run([*words, "--json"], without_pysail(tmp_path))
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout)["counts"]["missing"] == 5


@pytest.mark.drill
def test_watch_stays_on_apache_spark_and_says_why_when_the_embedded_engine_cannot_be_imported(
    set_to_spark: Path, tmp_path: Path
) -> None:
    there = without_pysail(tmp_path)
    del there[ENGINE]
    words = ["--config", str(set_to_spark), "watch", *STREAM, *AS_OF, "--json"]
    done = run(words, there)
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout)
    assert answer["engine"].startswith("Apache Spark")
    assert answer["engine_because"].startswith("pysail cannot be imported here (no wheel")
