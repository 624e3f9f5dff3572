"""The watches of a run: one per stream, as of the moment in which it starts."""

from audit_plan import PlannedJob, PlanRefusedError, config_file, driver_settings
from shardaudit.model.config import load_settings
from shardaudit.model.errors import ConfigError


def planned_watches() -> list[PlannedJob]:
    """One watch per stream of the configuration.

    Raises:
        PlanRefusedError: no configuration, a wrong one, or one without streams.
    """
    config = config_file()
    try:
        settings = load_settings(config)
    except ConfigError as error:
        raise PlanRefusedError(str(error)) from error
    if not settings.streams:
        raise PlanRefusedError(f"{config} has no streams: at least one table [streams.NAME]")
    return [
        {
            "stream": name,
            "driver": driver_settings(settings),
            # No --as-of: a watch that had to wait looks at what is there when it comes to it.
            "arguments": {"watch": ["--config", str(config), "watch", f"--stream={name}"]},
        }
        for name in settings.streams
    ]
