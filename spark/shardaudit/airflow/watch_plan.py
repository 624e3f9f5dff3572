"""The watches of a run: one per stream, as of the moment in which it starts."""

from shardaudit.airflow.planned import (
    PlannedJob,
    PlanRefusedError,
    config_file,
    planned_job,
    settings_of,
)
from shardaudit.model.errors import ConfigError


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
