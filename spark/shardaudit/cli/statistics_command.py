"""`shardaudit statistics`."""

import argparse
from datetime import timedelta

from shardaudit.adapters.clock import now
from shardaudit.cli.command import CommandContext, Reply, asked_time
from shardaudit.model.audit_id import newest_audit
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
from shardaudit.store.audits import audits_of
from shardaudit.store.read_deliveries import Deliveries, read_deliveries
from shardaudit.store.read_places import read_places

EXAMPLES = """\
  shardaudit statistics --stream events
  shardaudit statistics --stream events --by hour --json \\
      --from 2026-11-19T00:00:00Z --to 2026-11-20T00:00:00Z
"""
_HOUR = timedelta(hours=1)
_BY = ("stream", "shard", "hop", "hour")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The stream, the time, what a row is."""
    parser.add_argument("--stream", required=True, help="its name in the configuration")
    parser.add_argument(
        "--from", dest="start", metavar="T", help="start of the time; default: the last audit's"
    )
    parser.add_argument("--to", dest="end", metavar="T", help="its end, exclusive; with --from")
    parser.add_argument("--by", choices=_BY, default="stream", help="what a row is of")


def run(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    """Adds up what audits published."""
    settings = context.settings()
    stream = settings.stream(arguments.stream)
    _check(arguments.by, stream)
    window = _window(arguments, settings, stream.bucket)
    found = read_deliveries(settings, arguments.stream, window)
    rows, unplaced = _rows(arguments.by, settings, arguments.stream, found)
    whole = found.whole.line(arguments.stream, sample_rate=stream.sample_rate)
    said = Statistics(
        stream=arguments.stream,
        window=window,
        by=arguments.by,
        sample_rate=stream.sample_rate,
        unaudited=found.unaudited,
        whole=whole,
        rows=rows,
        unplaced=unplaced,
    )
    return Reply(document=said, view=statistics_view(said))


def _check(by: str, stream: Stream) -> None:
    if by == "hop" and not stream.route.places:
        raise ConfigError("--by", by, "a stream with `locations` between producer and sink")
    if by == "hour" and _HOUR % stream.bucket:
        raise ConfigError("--by", by, f"a stream whose bucket, {stream.bucket}, divides an hour")


def _window(arguments: argparse.Namespace, settings: Settings, bucket: timedelta) -> Window:
    asked = asked_time(arguments)
    if asked is None:
        newest, today = newest_audit(audits_of(settings, arguments.stream)), now()
        asked = Window(newest["window_start"], newest["window_end"]) if newest else None
        asked = asked or Window(today - DAY, today)
    if asked.end - asked.start > LONGEST:
        text = f"{instant(asked.start)}, {instant(asked.end)}"
        raise ConfigError("--from, --to", text, f"at most {LONGEST.days} days")
    return asked.aligned(bucket)


def _rows(
    by: str, settings: Settings, name: str, found: Deliveries
) -> tuple[list[DeliveryLine] | list[PlaceLine], int | None]:
    if by == "hop":
        return read_places(settings, name, found)
    rows = {
        "stream": {name: found.whole},
        "shard": found.shards,
        "hour": {instant(start): of for start, of in found.hours.items()},
    }[by]
    rate = settings.stream(name).sample_rate
    return [rows[key].line(key, sample_rate=rate) for key in sorted(rows)], None
