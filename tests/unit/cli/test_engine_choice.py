"""Which engine a command runs on, and what it says where that one cannot be had."""

import json
import re
import sys
from pathlib import Path

import pytest

from shardaudit.adapters.engine.door import chosen
from shardaudit.adapters.engine.light import LIGHT
from shardaudit.cli.command import CommandContext
from shardaudit.cli.main import main
from shardaudit.model.config.choices import EngineName
from shardaudit.model.config.parts import ENGINE
from shardaudit.model.config.settings import Settings, load_settings
from shardaudit.model.exit_code import ExitCode
from shardaudit.report.progress import NO_PROGRESS
from tests.configurations import LEAST

DOCS = Path(__file__).parents[3] / "docs"
SPARK, EMBEDDED = EngineName.SPARK, EngineName.EMBEDDED
# As where its library is for another machine.
BROKEN = 'raise ImportError("libpysail.so: wrong ELF class")'


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(ENGINE, raising=False)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    file = tmp_path / "shardaudit.toml"
    file.write_text(LEAST)
    return file


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ((None, None, None), "Apache Spark"),
        ((None, None, "embedded"), "pysail"),
        ((None, "embedded", None), "pysail"),
        ((None, "spark", "embedded"), "Apache Spark"),
        ((None, "", "embedded"), "pysail"),
        (("spark", "embedded", "embedded"), "Apache Spark"),
        (("embedded", "spark", "spark"), "pysail"),
    ],
)
def test_flag_comes_before_the_environment_and_that_before_the_file(
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    asked: tuple[str | None, str | None, str | None],
    wanted: str,
) -> None:
    flag, variable, key = asked
    if key is not None:
        config.write_text(f'engine = "{key}"\nwarehouse = "lake"\n[streams]\n')
    if variable is not None:
        monkeypatch.setenv(ENGINE, variable)
    words = [] if flag is None else ["--engine", flag]
    main(["--config", str(config), "doctor", "--json", *words])
    lines = {line["check"]: line for line in json.loads(capsys.readouterr().out)["checks"]}
    assert lines["engine"]["found"].startswith(wanted)


@pytest.mark.parametrize("line", ["audit --stream events", "backfill run --plan p"])
@pytest.mark.parametrize("by", ["flag", "environment"])
def test_unknown_engine_ends_with_2_and_what_would_do(
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: str,
    by: str,
) -> None:
    if by == "environment":
        monkeypatch.setenv(ENGINE, "embeded")
    words = ["--engine=embeded"] if by == "flag" else []
    assert main(["--config", str(config), *line.split(), *words]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert "--engine or $SHARDAUDIT_ENGINE: found 'embeded'" in said
    assert "embedded, spark (did you mean embedded?)" in said


@pytest.mark.parametrize("asked", [SPARK, EMBEDDED])
def test_it_is_always_apache_spark_under_spark_submit(
    monkeypatch: pytest.MonkeyPatch, asked: EngineName
) -> None:
    settings = Settings(warehouse="lake", engine=asked, streams={})
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    assert chosen(settings) is asked
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert chosen(settings) is SPARK


@pytest.mark.parametrize("asked", [None, "embedded", "spark"])
def test_repairs_are_always_by_apache_spark(config: Path, asked: str | None) -> None:
    config.write_text(f'engine = "embedded"\n{config.read_text()}')
    context = CommandContext(config=config, progress=lambda _: NO_PROGRESS, engine=asked)
    assert chosen(context.settings()) is (SPARK if asked == "spark" else EMBEDDED)
    assert chosen(context.repair_settings()) is SPARK
    assert context.repair_settings().streams == load_settings(config).streams


def test_docs_say_of_every_command_where_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = capsys.readouterr().out.partition("commands:\n")[2].partition("\n\n")[0]
    names = {line.split()[0] for line in listed.splitlines()}
    told = (DOCS / "engines.md").read_text().partition("## Which command")[2].partition("##")[0]
    assert {name for name in names if f"`{name}" not in told} == set()
    assert len(names) > 5


def test_docs_say_which_commands_are_light() -> None:
    page = (DOCS / "engines.md").read_text()
    [row] = [line for line in page.splitlines() if "(#commands-that-read-little)" in line]
    assert set(re.findall(r"`([a-z ]+)`", row)) == LIGHT


@pytest.fixture
def without_pysail(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration where pysail is there and cannot be imported.

    What a process says that never had it: tests/engines/test_no_jvm.py.
    """
    package = tmp_path / "broken" / "pysail"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(package.parent)
    for name in [name for name in sys.modules if name.partition(".")[0] == "pysail"]:
        monkeypatch.delitem(sys.modules, name)
    return config


def test_command_ends_with_2_and_the_cure_when_pysail_cannot_be_imported(
    without_pysail: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--config", str(without_pysail), "--engine=embedded", "audit", "--stream=events"]
    assert main(words) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert 'wanted "spark", as pysail cannot be imported here (libpysail.so' in said
    assert "Traceback" not in said


def test_doctor_works_when_pysail_cannot_be_imported(
    without_pysail: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--config", str(without_pysail), "--engine=embedded", "doctor", "--json"])
    lines = {line["check"]: line for line in json.loads(capsys.readouterr().out)["checks"]}
    assert lines["engine"]["level"] == "fail"
    assert lines["engine"]["cure"].startswith('set engine = "spark"')
    assert lines["configuration"]["level"] == "ok"
