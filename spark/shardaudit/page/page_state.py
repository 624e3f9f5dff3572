"""What a page shows, as its address says it: an address can be shared, and cannot do harm."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self
from urllib.parse import urlencode

from shardaudit.model.errors import ConfigError
from shardaudit.model.verdict import Kind, State
from shardaudit.model.window import LONGEST, Window, asked_span
from shardaudit.page.page_words import Metric
from shardaudit.report.plain import instant
from shardaudit.store.cell_grid import ALL_SHARDS, ShardRange

PREFIX = "shardaudit"  # of our addresses in Airflow
_KEYS = ("stream", "from", "to", "metric", "first", "last", "kind", "state", "id")
_MAX_TEXT = 4096  # an id of 1 KiB of emoji is one, written in UTF-8


@dataclass(frozen=True, slots=True)
class PageState:
    """The choices of a page. `window`: None is that of the newest audit."""

    stream: str = ""
    window: Window | None = None
    metric: Metric = Metric.VERDICT
    shards: ShardRange = ALL_SHARDS
    kind: str = ""
    state: str = ""
    part: str = ""

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Self:
        """The state that an address names. Keys that are not ours are not looked at.

        Raises:
            ConfigError: a value cannot be one; says what would do.
        """
        text = {key: given.get(key, "").strip() for key in _KEYS}
        for key, value in text.items():
            if len(value) > _MAX_TEXT:
                raise ConfigError(key, f"{len(value)} characters", f"at most {_MAX_TEXT}")
        return cls(
            stream=text["stream"],
            window=_window(text["from"], text["to"]),
            metric=Metric(_one_of("metric", text["metric"] or "verdict", list(Metric))),
            shards=ShardRange(text["first"] or None, text["last"] or None),
            kind=_one_of("kind", text["kind"], ["", *Kind]),
            state=_one_of("state", text["state"], ["", *State]),
            part=text["id"],
        )

    def link(self, page: str, **changes: Any) -> str:  # Any: the fields' own types
        """The address of a page with this state and some changes."""
        state = replace(self, **changes)
        window = state.window
        values = {
            "stream": state.stream,
            "from": _exact(window.start) if window else "",
            "to": _exact(window.end) if window else "",
            "metric": "" if state.metric is Metric.VERDICT else state.metric.value,
            "first": state.shards.first or "",
            "last": state.shards.last or "",
            "kind": state.kind,
            "state": state.state,
            "id": state.part,
        }
        query = urlencode({key: value for key, value in values.items() if value})
        return f"{page}?{query}" if query else page

    @property
    def findings(self) -> dict[str, str]:
        """The columns of findings that are asked for, with their values."""
        wanted = {"stream": self.stream, "kind": self.kind, "state": self.state}
        return {name: value for name, value in wanted.items() if value}


def _window(start: str, end: str) -> Window | None:
    window = asked_span(start or None, end or None)
    if window is not None and window.end - window.start > LONGEST:
        raise ConfigError("from, to", f"{start}, {end}", f"at most {LONGEST.days} days")
    return window


def _one_of(key: str, value: str, allowed: list[str]) -> str:
    if value not in allowed:
        raise ConfigError(key, value, ", ".join(filter(None, map(str, allowed))))
    return value


def _exact(at: datetime) -> str:
    return instant(at) if not at.microsecond else at.isoformat()
