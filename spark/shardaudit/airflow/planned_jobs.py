"""From the form of a run to the jobs that it does: one per stream, with their command lines."""

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TypedDict

from airflow.sdk.exceptions import AirflowFailException

from shardaudit.airflow.forms import AUDIT_FORM
from shardaudit.backfill.rules.planned import SINK_WRITING
from shardaudit.model.audit_id import audit_id
from shardaudit.model.config.choices import EngineName
from shardaudit.model.config.parts import CONFIG, ENGINE, NAMED_JARS
from shardaudit.model.config.settings import Settings, load_settings
from shardaudit.model.errors import ConfigError, FinalError
from shardaudit.model.window import Window, asked_window, parse_instant


class PlannedJob(TypedDict):
    """What the task of a job needs to know; small enough for XCom, without credentials."""

    stream: str
    driver: dict[str, str]
    arguments: dict[str, list[str]]  # by command
    engines: dict[str, str]  # the same


class PlannedAudit(PlannedJob):
    """What the tasks of one stream need to know; the command is audit, which ingests first."""

    audit_id: str


class PlanRefusedError(FinalError, AirflowFailException):
    """The run was asked for something that cannot be done: red, and no other try."""


def planned_run(form: Mapping[str, object], *, run_after: datetime) -> list[PlannedAudit]:
    """The audits of a run of the DAG, whose form is `form`.

    Raises:
        PlanRefusedError: what was asked cannot be done; says what was found and what would do.
    """
    config = config_file()
    try:
        return plan_audits(config, form, run_after=run_after)
    except ConfigError as error:
        raise PlanRefusedError(str(error)) from error


def planned_upkeep() -> PlannedJob:
    """The upkeep of the warehouse, which all streams share.

    Raises:
        PlanRefusedError: no configuration, or a wrong one.
    """
    config = config_file()
    try:
        settings = settings_of(config)
    except ConfigError as error:
        raise PlanRefusedError(str(error)) from error
    return planned_job(settings, "(all)", {"maintain": ["--config", str(config), "maintain"]})


def config_file() -> Path:
    """The shardaudit.toml that the environment names.

    Raises:
        PlanRefusedError: it names none.
    """
    config = os.environ.get(CONFIG)
    if not config:
        raise PlanRefusedError(f"{CONFIG} is not set: it must name the shardaudit.toml")
    return Path(config)


def configured() -> Settings:
    """The configuration that the environment names.

    Raises:
        PlanRefusedError: it names none.
        ConfigError: it is a wrong one, or the environment names no engine that there is.
    """
    return settings_of(config_file())


def settings_of(config: Path) -> Settings:
    """The configuration with the engine that the environment names, as the commands have it.

    Raises:
        ConfigError: as `configured`.
    """
    return load_settings(config).with_engine(os.environ.get(ENGINE) or None)


def planned_job(settings: Settings, stream: str, arguments: dict[str, list[str]]) -> PlannedJob:
    """A job of these command lines. What writes into a sink is for Apache Spark, as by hand."""
    own = settings.engine.value
    return {
        "stream": stream,
        # What must be known before the driver's JVM starts; the job sets the rest of [spark].
        "driver": {
            key: value
            for key, value in settings.spark.items()
            if key.startswith("spark.driver.") or key == NAMED_JARS
        },
        "arguments": arguments,
        "engines": {
            command: EngineName.SPARK.value if command in SINK_WRITING else own
            for command in arguments
        },
    }


def plan_audits(
    config: Path, form: Mapping[str, object], *, run_after: datetime
) -> list[PlannedAudit]:
    """One audit per stream that the form asks for; all streams when it names none.

    `run_after` is the "now" of the run unless the form gives one: the same in every try.

    Raises:
        ConfigError: an unknown key, stream or time, a window that is empty, too long or still to
            come, a wrong configuration.
    """
    unknown = sorted(set(form) - set(AUDIT_FORM))
    if unknown:
        raise ConfigError("run configuration", ", ".join(unknown), f"only {', '.join(AUDIT_FORM)}")
    settings = settings_of(config)
    if not settings.streams:
        raise ConfigError(str(config), "no streams", "at least one table [streams.NAME]")
    as_of = _instant(form, "as_of") or run_after
    stream = form.get("stream")
    planned = []
    for name in list(settings.streams) if stream is None else [str(stream)]:
        end, asked = _instant(form, "to") or as_of, settings.stream(name)
        start = _instant(form, "from") or end - asked.audit_window
        window = asked_window(start, end, as_of=as_of)
        planned.append(_planned(settings, name, window=window, as_of=as_of, config=config))
    return planned


def _instant(form: Mapping[str, object], key: str) -> datetime | None:
    text = form.get(key)
    return None if text is None else parse_instant(str(text), where=key)


def _planned(
    settings: Settings, name: str, *, window: Window, as_of: datetime, config: Path
) -> PlannedAudit:
    stream = settings.stream(name)
    arguments = {
        "audit": [
            *("--config", str(config), "audit"),
            f"--stream={name}",
            f"--from={window.start.isoformat()}",
            f"--to={window.end.isoformat()}",
            f"--as-of={as_of.isoformat()}",
        ],
    }
    return {
        **planned_job(settings, name, arguments),
        "audit_id": audit_id(name, window.aligned(stream.bucket), as_of, stream.digest()),
    }


def planned_watches() -> list[PlannedJob]:
    """One watch per stream of the configuration.

    Raises:
        PlanRefusedError: no configuration, a wrong one, or one without streams.
    """
    config = config_file()
    try:
        settings = settings_of(config)
    except ConfigError as error:
        raise PlanRefusedError(str(error)) from error
    if not settings.streams:
        raise PlanRefusedError(f"{config} has no streams: at least one table [streams.NAME]")
    return [
        # No --as-of: a watch that had to wait looks at what is there when it comes to it.
        planned_job(
            settings, name, {"watch": ["--config", str(config), "watch", f"--stream={name}"]}
        )
        for name in settings.streams
    ]
