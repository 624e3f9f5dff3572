"""Which engine runs a command that reads little, where none was asked for by name.

Such a command is over before Apache Spark's JVM would have started. What the file says is meant for
the audit of a night; who wants Apache Spark for this run too says so, by `--engine` or the
environment. Imports no PySpark.
"""

from collections.abc import Callable
from dataclasses import dataclass

from shardaudit.adapters.engine.requirements import (
    EngineMissingError,
    embedded_server,
    is_submitted,
    other_people,
    require_plain_path,
    unlisted_people,
)
from shardaudit.model.config.choices import EngineName
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ConfigError

# The commands that read findings, sums and the log of a table, as a rule. The watch ingests, too.
LIGHT = frozenset({"backfill plan", "dedupe plan", "findings accept", "findings list", "watch"})
# Of files, some ten million messages: 50 million were audited within embedded.memory's 3 GiB.
MOST_BYTES = 2**30

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class LightChoice:
    """Settings with the engine that is to run. `because`: why that one; None: it is the one set."""

    settings: Settings
    because: str | None = None


def light_choice(
    command: str, settings: Settings, *, asked: str | None, reads: Callable[[], int]
) -> LightChoice:
    """What runs a command: the embedded engine where it is light and may run here, or what is set.

    Input:
        asked: the engine that was named for this run, if one was: it is the one in the settings.
        reads: the size in bytes of what the command is going to read; asked only when it matters.
    """
    is_open = asked is None and command in LIGHT and not is_submitted()
    if not is_open or settings.engine is EngineName.EMBEDDED:
        return LightChoice(settings)
    hindrance = _hindrance(settings) or _too_much(reads())
    if hindrance is not None:
        return LightChoice(settings, hindrance)
    why = "it reads little; --engine spark has Apache Spark do it"
    return LightChoice(settings.with_engine(EngineName.EMBEDDED), why)


def _hindrance(settings: Settings) -> str | None:
    """Why the embedded engine must not, or cannot, take Apache Spark's place here."""
    return _of_spark(settings.spark) or _of_port(settings) or _of_engine(settings)


def _of_spark(spark: dict[str, str]) -> str | None:
    master = spark.get("spark.master", "local")
    if not master.startswith("local"):
        return f"[spark] names a cluster ({master})"
    hadoop = [key for key in spark if key.startswith("spark.hadoop.")]
    return f"[spark] says how files are reached ({hadoop[0]})" if hadoop else None


def _of_port(settings: Settings) -> str | None:
    if settings.embedded.shared_machine:
        return None
    others = other_people()
    who = f"{others[0]!r}" if others else unlisted_people()
    return who and (
        f"{who} could use the embedded engine's port, which has no password "
        "(embedded.shared_machine = true accepts that)"
    )


def _of_engine(settings: Settings) -> str | None:
    try:
        require_plain_path(settings.warehouse)
        embedded_server()
    except EngineMissingError as error:
        return f"pysail cannot be imported here ({error.__cause__})"
    except ConfigError:
        return f"the embedded engine does not take the warehouse's path {settings.warehouse}"
    return None


def _too_much(size: int) -> str | None:
    if size <= MOST_BYTES:
        return None
    return f"it has {size / _MIB:,.0f} MiB to read, more than {MOST_BYTES / _MIB:,.0f}"
