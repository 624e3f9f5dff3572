"""Values → HTML. Everything is escaped by the templates' engine; nothing comes from outside."""

import base64
import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from shardaudit.model.words import byte_size, length
from shardaudit.page.page_map import letter
from shardaudit.page.page_route import way_words
from shardaudit.page.page_words import (
    GATE_LOOKS,
    LEVEL_NAMES,
    MAP_COUNTS,
    MEANINGS,
    MEANINGS_OF_WAYS,
    METRICS,
    NOT_KNOWN,
    STREAM_NUMBERS,
    WHERE,
    Metric,
)
from shardaudit.report.health import OK_IN_PART
from shardaudit.report.plain import visible
from shardaudit.report.rate_lines import budget_lines, rated, used_line
from shardaudit.report.route_lines import doubled_after, doubled_line, lost_told, place_told

_ASSETS = files("shardaudit.page") / "assets"
_SHOWN = 72
_SHOWN_ATTRIBUTES = 50  # of a message, which may have as many as a line of 8 MiB holds


def _short(text: str | None) -> str:
    """An id as it fits into a column; the whole of it is in the title."""
    if text is None:
        return "–"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _instant(at: datetime | None) -> str:
    return "–" if at is None else f"{at:%Y-%m-%d %H:%M} UTC"


def _plain(value: object) -> object:
    """A text from outside without what a browser obeys instead of showing it."""
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return visible(str(value)) if is_text else value


_ENVIRONMENT = Environment(
    loader=PackageLoader("shardaudit.page"),
    autoescape=True,
    finalize=_plain,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters.update(
    short=_short, instant=_instant, letter=letter, size=byte_size, count=lambda n: f"{n:,}"
)
_ENVIRONMENT.globals.update(
    METRICS=METRICS,
    SHOWN_ATTRIBUTES=_SHOWN_ATTRIBUTES,
    MEANINGS=MEANINGS,
    COUNTS=MAP_COUNTS,
    GATE_LOOKS=GATE_LOOKS,
    MEANINGS_OF_WAYS=MEANINGS_OF_WAYS,
    way_words=way_words,
    NUMBERS=STREAM_NUMBERS,
    place_told=partial(place_told, words=WHERE),
    lost_told=lost_told,
    doubled_after=doubled_after,
    doubled_line=doubled_line,
    LEVEL_NAMES=LEVEL_NAMES,
    NOT_KNOWN=NOT_KNOWN,
    OK_IN_PART=OK_IN_PART,
    budget_lines=budget_lines,
    used_line=used_line,
    rated=rated,
    Metric=Metric,
    length=lambda seconds: length(timedelta(seconds=seconds)),
)


def html_page(template: str, values: Mapping[str, object]) -> str:
    """The page of a template."""
    return _ENVIRONMENT.get_template(template).render(values)


def asset(name: str) -> str:
    """The stylesheet or the script."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def script_hash(text: str) -> str:
    """What a Content-Security-Policy calls an inline script that it lets run."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
