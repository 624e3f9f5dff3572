from datetime import UTC, datetime
from pathlib import Path

import pytest

from shardaudit.airflow.planned_jobs import PlanRefusedError, plan_audits, planned_run
from shardaudit.model.errors import ConfigError

RUN_AFTER = datetime(2026, 11, 20, 2, tzinfo=UTC)


def option(arguments: list[str], name: str) -> str:
    return next(a for a in arguments if a.startswith(f"--{name}=")).partition("=")[2]


def test_every_stream_is_audited_over_its_window_when_the_form_is_empty(config: Path) -> None:
    events, orders = plan_audits(config, {}, run_after=RUN_AFTER)
    assert [events["stream"], orders["stream"]] == ["events", "orders"]
    audit = events["arguments"]["audit"]
    assert option(audit, "from") == "2026-11-18T02:00:00+00:00"
    assert option(audit, "to") == "2026-11-20T02:00:00+00:00"
    assert option(audit, "as-of") == "2026-11-20T02:00:00+00:00"
    assert option(orders["arguments"]["audit"], "from") == "2026-11-13T02:00:00+00:00"


def test_one_command_ingests_and_audits(config: Path) -> None:
    (planned,) = plan_audits(config, {"stream": "events"}, run_after=RUN_AFTER)
    [words] = planned["arguments"].values()
    assert words[:4] == ["--config", str(config), "audit", "--stream=events"]
    assert "--no-ingest" not in words


def test_the_window_is_the_one_that_the_form_names(config: Path) -> None:
    form = {
        "stream": "events",
        "from": "2026-11-01T00:00:00.000Z",
        "to": "2026-11-02T02:00:00+02:00",
        "as_of": None,
    }
    (planned,) = plan_audits(config, form, run_after=RUN_AFTER)
    audit = planned["arguments"]["audit"]
    assert option(audit, "from") == "2026-11-01T00:00:00+00:00"
    assert option(audit, "to") == "2026-11-02T00:00:00+00:00"
    assert option(audit, "as-of") == RUN_AFTER.isoformat()
    assert planned["audit_id"].startswith("events-20261101T000000Z-20261102T000000Z-")


def test_the_window_ends_at_as_of_when_only_as_of_is_given(config: Path) -> None:
    form = {"stream": "events", "as_of": "2026-11-10T00:00:30Z"}
    (planned,) = plan_audits(config, form, run_after=RUN_AFTER)
    assert option(planned["arguments"]["audit"], "to") == "2026-11-10T00:00:30+00:00"
    assert "-20261110T000100Z-" in planned["audit_id"]  # in whole buckets


def test_another_try_is_the_same_audit(config: Path) -> None:
    assert plan_audits(config, {}, run_after=RUN_AFTER) == plan_audits(
        config, {}, run_after=RUN_AFTER
    )


def test_only_the_driver_s_settings_go_to_spark_submit(config: Path) -> None:
    planned, _ = plan_audits(config, {}, run_after=RUN_AFTER)
    assert planned["driver"] == {"spark.driver.memory": "5g"}


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ({"strem": "events"}, "found 'strem', wanted only stream, from, to, as_of"),
        ({"stream": "evnts"}, "one of events, orders (did you mean events?)"),
        (
            {"stream": "x", "from": "2026-11-01T00:00:00Z", "to": "2026-11-02T00:00:00Z"},
            "one of events, orders",
        ),
        ({"from": "2026-11-03T00:00:00Z", "to": "2026-11-02T00:00:00Z"}, "wanted from before to"),
        ({"from": "2026-11-02T00:00:00Z", "to": "2026-11-02T00:00:00Z"}, "wanted from before to"),
        ({"from": "2026-11-21T00:00:00Z"}, "wanted from before to"),
        ({"to": "2026-11-20T02:01:01Z"}, "wanted at most 2026-11-20T02:00:00+00:00"),
        ({"to": "2026-11-02T00:00:00"}, "an ISO 8601 time with a zone"),
        ({"as_of": "tomorrow"}, "as_of: found 'tomorrow', wanted an ISO 8601 time"),
    ],
)
@pytest.mark.usefixtures("config")
def test_the_first_task_refuses_when_the_form_let_it_pass(
    form: dict[str, object], reason: str
) -> None:
    with pytest.raises(PlanRefusedError) as refused:
        planned_run(form, run_after=RUN_AFTER)
    assert reason in str(refused.value)


def test_a_window_that_the_command_would_refuse_is_refused_before_the_ingest(config: Path) -> None:
    with pytest.raises(ConfigError, match="at most 366 days"):
        plan_audits(config, {"from": "2016-11-20T00:00:00Z"}, run_after=RUN_AFTER)


def test_the_first_task_refuses_when_nothing_names_the_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SHARDAUDIT_CONFIG", raising=False)
    with pytest.raises(PlanRefusedError, match="SHARDAUDIT_CONFIG is not set"):
        planned_run({}, run_after=RUN_AFTER)


def test_a_configuration_without_streams_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "empty.toml"
    file.write_text('warehouse = "w"\n[streams]\n')
    with pytest.raises(ConfigError, match=r"at least one table \[streams.NAME\]"):
        plan_audits(file, {}, run_after=RUN_AFTER)
