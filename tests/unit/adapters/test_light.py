"""Which engine runs a command that reads little, and what it says of it."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from shardaudit.adapters.engine import light
from shardaudit.adapters.engine.light import LIGHT, MOST_BYTES, LightChoice, light_choice
from shardaudit.model.config.choices import EngineName
from shardaudit.model.config.parts import Embedded
from shardaudit.model.config.settings import Settings

SPARK, EMBEDDED = EngineName.SPARK, EngineName.EMBEDDED
ALONE = Embedded(shared_machine=True)  # whoever else has an account where the tests run
PODS = "KUBERNETES_SERVICE_HOST", "ECS_CONTAINER_METADATA_URI_V4"
THERE = "PYSPARK_GATEWAY_PORT", *PODS


@pytest.fixture(autouse=True)
def _plain_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in THERE:
        monkeypatch.delenv(name, raising=False)


def settings(
    *, engine: EngineName = SPARK, warehouse: str = "lake", spark: dict[str, str] | None = None
) -> Settings:
    return Settings(
        warehouse=warehouse, engine=engine, spark=spark or {}, embedded=ALONE, streams={}
    )


def nothing() -> int:
    return 0


def never() -> int:
    raise AssertionError("nobody has to look")


def test_each_command_that_asks_for_it_is_light() -> None:
    commands = Path(light.__file__).parents[2] / "cli"
    asked = {
        name
        for file in commands.glob("*.py")
        for name in re.findall(r"\.light\(\s*\"([^\"]+)\"", file.read_text())
    }
    assert asked == LIGHT


def chosen(
    of: Settings,
    *,
    command: str = "watch",
    asked: str | None = None,
    reads: Callable[[], int] = nothing,
) -> LightChoice:
    return light_choice(command, of, asked=asked, reads=reads)


@pytest.mark.parametrize("command", sorted(LIGHT))
def test_light_command_runs_embedded_and_says_so_when_apache_spark_is_set(command: str) -> None:
    choice = chosen(settings(), command=command)
    assert choice.settings.engine is EMBEDDED
    assert choice.settings == settings().with_engine(EMBEDDED)
    assert choice.because == "it reads little; --engine spark has Apache Spark do it"


@pytest.mark.parametrize("command", ["audit", "ingest", "backfill run", "backfill verify"])
def test_other_command_runs_on_what_is_set(command: str) -> None:
    assert chosen(settings(), command=command, reads=never) == LightChoice(settings())


def test_engine_that_was_asked_for_runs_without_a_word() -> None:
    assert chosen(settings(), asked="spark", reads=never) == LightChoice(settings())
    embedded = settings(engine=EMBEDDED)
    assert chosen(embedded, reads=never) == LightChoice(embedded)


def test_apache_spark_runs_without_a_word_when_it_was_submitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert chosen(settings(), reads=never) == LightChoice(settings())


@pytest.mark.parametrize(
    ("of", "because"),
    [
        (settings(spark={"spark.master": "yarn"}), "[spark] names a cluster (yarn)"),
        (
            settings(spark={"spark.hadoop.fs.s3a.proxy.host": "p"}),
            "[spark] says how files are reached (spark.hadoop.fs.s3a.proxy.host)",
        ),
        (
            settings(warehouse="/a b"),
            "the embedded engine does not take the warehouse's path /a b",
        ),
    ],
)
def test_apache_spark_runs_and_says_why_when_the_embedded_engine_may_not(
    of: Settings, because: str
) -> None:
    assert chosen(of, reads=never) == LightChoice(of, because)


def test_local_apache_spark_is_one_machine() -> None:
    of = settings(spark={"spark.master": "local[4]", "spark.driver.memory": "8g"})
    assert chosen(of).settings.engine is EMBEDDED


@pytest.mark.parametrize("pod", PODS)
def test_apache_spark_runs_and_says_why_when_others_could_reach_the_port(
    monkeypatch: pytest.MonkeyPatch, pod: str
) -> None:
    monkeypatch.setenv(pod, "10.0.0.1")
    shared = settings().model_copy(update={"embedded": Embedded()})
    choice = chosen(shared, reads=never)
    assert choice.settings.engine is SPARK
    assert "could use the embedded engine's port, which has no password" in str(choice.because)
    assert chosen(settings()).settings.engine is EMBEDDED


def test_apache_spark_runs_and_says_why_when_pysail_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pysail").mkdir()
    (tmp_path / "pysail" / "__init__.py").write_text("raise ImportError('no wheel')")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "pysail"]:
        monkeypatch.delitem(sys.modules, name)
    because = "pysail cannot be imported here (no wheel)"
    assert chosen(settings(), reads=never) == LightChoice(settings(), because)


def test_apache_spark_runs_and_says_why_when_there_is_much_to_read() -> None:
    assert chosen(settings(), reads=lambda: MOST_BYTES).settings.engine is EMBEDDED
    much = chosen(settings(), reads=lambda: 3 * 2**30)
    assert much == LightChoice(settings(), "it has 3,072 MiB to read, more than 1,024")
