"""`shardaudit statistics`."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from shardaudit.adapters.clock import now
from shardaudit.cli.command import CommandContext, Reply, asked_time
from shardaudit.model.audit_id import newest_audit
from shardaudit.model.config.eras import Eras
from shardaudit.model.config.settings import DAY, Settings, Stream
from shardaudit.model.errors import ConfigError
from shardaudit.model.window import LONGEST, Window
from shardaudit.report.delivery_view import (
    DeliveryLine,
    PlaceLine,
    Statistics,
    statistics_view,
)
from shardaudit.report.plain import instant
from shardaudit.store.audits import audits_of, read_eras
from shardaudit.store.read_deliveries import Deliveries, Delivery, read_deliveries
from shardaudit.store.read_places import read_places

EXAMPLES = """\
  shardaudit statistics --stream events
  shardaudit statistics --stream events --by hour --json \\
      --from 2026-11-19T00:00:00Z --to 2026-11-20T00:00:00Z
  shardaudit statistics --stream events --by hour place
"""
_BY = ("stream", "shard", "place", "hour")
_HOUR = timedelta(hours=1)
_OF_HOURS = ("shard", "place")  # what a row may be of beside its hour


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The stream, the time, what a row is."""
    parser.add_argument("--stream", required=True, help="its name in the configuration")
    parser.add_argument(
        "--from", dest="start", metavar="T", help="start of the time; default: the last audit's"
    )
    parser.add_argument("--to", dest="end", metavar="T", help="its end, exclusive; with --from")
    parser.add_argument(
        "--by",
        nargs="+",
        type=lambda name: {"hop": "place"}.get(name, name),  # that leads to it
        choices=_BY,
        default=["stream"],
        help="what a row is of: one, or `hour` and one of shard, place",
    )


def run(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    """Adds up what audits published."""
    settings = context.settings()
    asked, eras = _asked(arguments, settings), read_eras(settings, arguments.stream)
    window = eras.aligned(asked)
    stream = of_eras(settings.stream(arguments.stream), eras, window)
    by = _by(arguments.by, stream)
    is_both = by == ["hour", "shard"]
    found = read_deliveries(settings, arguments.stream, window, by_hour_and_shard=is_both)
    rows, unplaced = _rows(by, settings, arguments.stream, found, stream.sample_rate)
    whole = found.whole.line(arguments.stream, sample_rate=stream.sample_rate)
    said = Statistics(
        stream=arguments.stream,
        window=window,
        by=by,
        sample_rate=stream.sample_rate,
        unaudited=found.unaudited,
        whole=whole,
        rows=rows,
        unplaced=unplaced,
    )
    return Reply(document=said, view=statistics_view(said))


def _by(asked: Sequence[str], stream: Stream) -> list[str]:
    """What a row is of, the hour first."""
    by = sorted(asked, key=lambda name: name != "hour")
    if len(by) > 1 and (by[0] != "hour" or len(by) > 2 or by[1] not in _OF_HOURS):  # noqa: PLR2004
        wanted = f"one, or hour with one of {', '.join(_OF_HOURS)}"
        raise ConfigError("--by", " ".join(asked), wanted)
    if "place" in by and not stream.route.places:
        wanted = "a stream with `locations` between producer and sink"
        raise ConfigError("--by", " ".join(asked), wanted)
    if "hour" in by and _HOUR % stream.bucket:
        wanted = f"a stream whose bucket, {stream.bucket}, divides an hour"
        raise ConfigError("--by", " ".join(asked), wanted)
    return by


def of_eras(stream: Stream, eras: Eras, window: Window) -> Stream:
    """The stream with the sample rate of a window, and the width of its widest cells.

    Raises:
        ConfigError: another share of the ids counts in one part of it than in another.
    """
    parts = eras.parts(window)
    if len({shape.sample_rate for _, shape in parts}) > 1:
        said = "; ".join(f"{shape.sample_rate:g} until {instant(at.end)}" for at, shape in parts)
        raise ConfigError("--from, --to", f"a time of several samples of the ids: {said}", "of one")
    said_of = {"bucket": eras.within(window).widest, "sample_rate": parts[0][1].sample_rate}
    return stream.model_copy(update=said_of)


def _asked(arguments: argparse.Namespace, settings: Settings) -> Window:
    asked = asked_time(arguments)
    if asked is None:
        today = now()
        newest = newest_audit(audits_of(settings, arguments.stream, now=today))
        asked = Window(newest["window_start"], newest["window_end"]) if newest else None
        asked = asked or Window(today - DAY, today)
    if asked.end - asked.start > LONGEST:
        text = f"{instant(asked.start)}, {instant(asked.end)}"
        raise ConfigError("--from, --to", text, f"at most {LONGEST.days} days")
    return asked


def _rows(
    by: Sequence[str], settings: Settings, name: str, found: Deliveries, rate: float
) -> tuple[list[DeliveryLine] | list[PlaceLine], int | None]:
    if "place" in by:
        return read_places(settings, name, found, by_hour="hour" in by)
    if len(by) > 1:
        return _hours_of_shards(found, sample_rate=rate), None
    rows = {
        "stream": {name: found.whole},
        "shard": found.shards,
        "hour": {instant(start): of for start, of in found.hours.items()},
    }[by[0]]
    return [rows[key].line(key, sample_rate=rate) for key in sorted(rows)], None


def _hours_of_shards(found: Deliveries, *, sample_rate: float) -> list[DeliveryLine]:
    """A row for each hour and shard that has cells in it; one for an hour that no audit saw."""
    known = {start for start, _ in found.hours_of_shards}
    rows: dict[tuple[datetime, str | None], Delivery] = dict(found.hours_of_shards.items())
    rows |= {(start, None): Delivery() for start in found.hours.keys() - known}
    return [
        replace(rows[start, shard].line(shard, sample_rate=sample_rate), hour=instant(start))
        for start, shard in sorted(rows, key=lambda row: (row[0], row[1] or ""))
    ]
