"""What the demo says of its engines."""

import io

import pytest
from rich.console import Console

from shardaudit.adapters.engine.requirements import OpenPortError
from shardaudit.model.config.choices import EngineName
from shardaudit.model.errors import ConfigError
from shardaudit.model.tables.audit_tables import AUDITS
from tools.demo_engines import (
    RESULTS,
    Agreement,
    NotHereError,
    agreement,
    engines_view,
    night_engine,
    proving_engines,
)

SPARK, SAIL = "Apache Spark 4.1.4", "pysail 0.7.2 (embedded)"


def row(engine: str, **other: object) -> dict[str, object]:
    """A row of `audits`, all of whose clocks and inputs are its own."""
    clock = object()
    own = {"started_at": clock, "finished_at": clock, "inputs": engine, "engine": engine}
    return {**dict.fromkeys(AUDITS.names, 1), "verdict": "loss", **own, **other}


def shown(found: Agreement, *, night: str = SAIL) -> str:
    console = Console(file=io.StringIO(), width=200, color_system=None)
    console.print(engines_view(night, found))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_both_engines_agree_when_all_but_the_run_itself_is_alike() -> None:
    found = agreement([row(SAIL), row(SPARK)])
    assert found.is_equal
    said = shown(found)
    assert f"the night ran on {SAIL}; the repairs, which write into the sink, on {SPARK}" in said
    assert f"audited on {SAIL} and on {SPARK}: the same verdict (loss), all {len(RESULTS)}" in said


@pytest.mark.parametrize("name", RESULTS)
def test_one_result_that_differs_is_told_with_both_values(name: str) -> None:
    found = agreement([row(SAIL, **{name: 3}), row(SPARK, **{name: 5})])
    assert (found.is_equal, found.differing) == (False, (f"{name} 3 and 5",))
    assert f"NOT the same: {name} 3 and 5" in shown(found)


def test_every_number_of_an_audit_is_a_result() -> None:
    assert {"verdict", "sent", "missing", "extra_rows", "trace_coverage", "watermark"} <= {*RESULTS}
    assert "engine" not in RESULTS


def test_nothing_is_compared_when_apache_spark_ran_all_of_it() -> None:
    found = agreement([row(SPARK)])
    assert found.is_equal
    assert "audited on" not in shown(found, night=SPARK)


def test_apache_spark_audits_last() -> None:
    assert proving_engines(EngineName.EMBEDDED) == [EngineName.EMBEDDED, EngineName.SPARK]
    assert proving_engines(EngineName.SPARK) == [EngineName.SPARK]


def test_environment_chooses_the_night_s_engine() -> None:
    assert night_engine({"SHARDAUDIT_ENGINE": "spark"}) is EngineName.SPARK
    with pytest.raises(ConfigError, match="embedded, spark"):
        night_engine({"SHARDAUDIT_ENGINE": "flink"})


def test_machine_on_which_it_cannot_run_embedded_is_told_how_it_can() -> None:
    said = str(NotHereError(OpenPortError(["ann"])))
    assert "'ann' can log in here" in said
    assert said.endswith("make demo ENGINE=spark")
