"""What ran which part of the demo, and whether both engines say the same of the repaired day."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from rich.console import Group, RenderableType
from rich.text import Text

from shardaudit.adapters.engine.requirements import (
    EngineMissingError,
    OpenPortError,
    embedded_server,
    require_own_machine,
)
from shardaudit.model.config.choices import EngineName
from shardaudit.model.config.parts import ENGINE, Embedded, asked_engine
from shardaudit.model.errors import FinalError
from shardaudit.model.tables.audit_tables import AUDITS
from tools.demo_result import Row

# Of an audit's row: which audit it is, when it ran and by what; all else is its result.
_OF_THE_RUN = {
    *("audit_id", "stream", "window_start", "window_end", "as_of", "config_digest", "inputs"),
    *("started_at", "finished_at", "engine"),
}
RESULTS = tuple(name for name in AUDITS.names if name not in _OF_THE_RUN)


class NotHereError(FinalError, RuntimeError):
    """The demo's night cannot run on the embedded engine here."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"{error}. All of the demo on Apache Spark: make demo ENGINE=spark")


@dataclass(frozen=True, slots=True)
class Agreement:
    """Audits of one time, one by each engine. `differing`: their results that are not alike."""

    engines: tuple[str, ...]
    verdict: str
    differing: tuple[str, ...]

    @property
    def is_equal(self) -> bool:
        """Whether they say the same."""
        return not self.differing


def night_engine(environment: Mapping[str, str]) -> EngineName:
    """What runs the demo's night: the embedded engine, unless the environment names one.

    Raises:
        ConfigError: there is no such engine.
        NotHereError: the embedded engine cannot run on this machine.
    """
    engine = asked_engine(environment.get(ENGINE) or EngineName.EMBEDDED)
    if engine is EngineName.EMBEDDED:
        try:
            embedded_server()
            require_own_machine(Embedded())
        except (EngineMissingError, OpenPortError) as error:
            raise NotHereError(error) from error
    return engine


def proving_engines(night: EngineName) -> list[EngineName]:
    """What audits the repaired day, in this order: the night's engine, Apache Spark last."""
    return [*({night} - {EngineName.SPARK}), EngineName.SPARK]


def agreement(audits: Sequence[Row]) -> Agreement:
    """The audits' rows of `audits` against the first of them."""
    first = audits[0]
    return Agreement(
        engines=tuple(audit["engine"] for audit in audits),
        verdict=first["verdict"],
        differing=tuple(
            f"{name} {' and '.join(str(audit[name]) for audit in audits)}"
            for name in RESULTS
            if any(audit[name] != first[name] for audit in audits)
        ),
    )


def engines_view(night: str, found: Agreement) -> RenderableType:
    """Which was which, and one line on whether it matters."""
    repairs = f"the repairs, which write into the sink, on Apache Spark {version('pyspark')}"
    which = Text(f"\nthe night ran on {night}; {repairs}")
    if len(found.engines) == 1:
        return which
    said = f"the repaired day, audited on {' and on '.join(found.engines)}"
    if found.is_equal:
        same = f"{said}: the same verdict ({found.verdict}), all {len(RESULTS)} results equal"
        return Group(which, Text(same, style="bold green"))
    unlike = Text(f"{said}: NOT the same: {', '.join(found.differing)}", style="bold red")
    return Group(which, unlike)
