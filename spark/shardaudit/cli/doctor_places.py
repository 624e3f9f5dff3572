"""What `doctor` finds at the places that the configuration names."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cache, partial

from shardaudit.adapters.aws.kinesis import (
    StreamFacts,
    kinesis_client,
    kinesis_errors,
    stream_facts,
)
from shardaudit.adapters.clock import now
from shardaudit.adapters.files.files import links_below
from shardaudit.cli.doctor_line import FAIL, OK, WARN, Line, looked
from shardaudit.model.audit_id import newest_audit
from shardaudit.model.config.settings import Settings, Stream
from shardaudit.model.errors import ShardauditError
from shardaudit.model.input_columns import REQUIRED, SINK_COLUMNS
from shardaudit.model.tables.table import WAREHOUSE_VERSION
from shardaudit.model.words import counted, length
from shardaudit.report.next_steps import given_up_line, retention_note, too_short
from shardaudit.store.audits import audits_of, given_up_spans, read_eras
from shardaudit.store.health_times import read_health
from shardaudit.store.migrations import check_versions
from shardaudit.store.probes import SAMPLE, count_files, probe_warehouse, sink_columns


def place_lines(settings: Settings) -> Iterator[Line]:
    """The warehouse's lines, and those of each stream."""
    yield looked(
        "warehouse",
        partial(_warehouse, settings),
        cure="check [aws] and the credentials, or make the place writable for this user",
    )
    yield looked(
        "warehouse's version",
        partial(_version, settings),
        cure="an earlier one: `shardaudit migrate`; a later one: install what wrote it",
    )
    for name, stream in settings.streams.items():
        facts = cache(partial(_facts, settings, stream.stream_name))
        yield from _of_kinesis(name, stream, facts)
        yield from _of_stream(settings, name, stream)
        yield from _of_tables(settings, name)


def _facts(settings: Settings, stream_name: str) -> StreamFacts:
    with kinesis_errors(stream_name):
        return stream_facts(kinesis_client(settings), stream_name)


def _of_kinesis(name: str, stream: Stream, facts: Callable[[], StreamFacts]) -> Iterator[Line]:
    yield looked(
        f"{name}: Kinesis",
        partial(_kinesis, stream, facts),
        cure="check [aws]; where Kinesis cannot be asked set `retention` to the stream's own",
        without=FAIL if stream.retention is None else WARN,
    )
    yield looked(
        f"{name}: time to repair",
        partial(_repair, stream, facts),
        cure="extend the stream's retention, audit more often, or raise backfill.read_share",
        without=WARN,
    )


def _of_stream(settings: Settings, name: str, stream: Stream) -> Iterator[Line]:
    yield looked(
        f"{name}: traces",
        partial(_traces, settings, stream),
        cure="check traces.path, its rights, and that the producers write there",
    )
    yield looked(
        f"{name}: sink",
        partial(_sink, settings, stream),
        cure="check sink.path, its rights, sink.format and sink.columns",
    )


def _of_tables(settings: Settings, name: str) -> Iterator[Line]:
    """What the warehouse knows of a stream."""
    yield looked(
        f"{name}: cells",
        partial(_cells, settings, name),
        cure="docs/upgrades.md says when another bucket or sample_rate holds",
        without=WARN,
    )
    yield looked(
        f"{name}: late minutes",
        partial(_late_minutes, settings, name),
        cure="audit them by hand, as the sentence says",
        without=WARN,
    )
    yield looked(
        f"{name}: health",
        partial(_health, settings, name),
        cure="switch on the DAGs nightly_audit and retention_watch, or look at their last runs",
        without=WARN,
    )


def _health(settings: Settings, stream: str) -> tuple[str, str]:
    at = now()
    health = read_health(settings, stream, now=at)
    return (WARN if health.troubles(at) else OK), health.sentence(at)


def _late_minutes(settings: Settings, stream: str) -> tuple[str, str]:
    audits = audits_of(settings, stream, now=now())
    newest = newest_audit(row for row in audits if row["waiting"] is not None)
    given_up = given_up_spans(newest) if newest else ()
    said = "; ".join(map(given_up_line, given_up))
    return (WARN, said) if said else (OK, "none is given up")


def _warehouse(settings: Settings) -> tuple[str, str]:
    probe_warehouse(settings)
    return OK, f"{settings.warehouse} is writable"


def _version(settings: Settings) -> tuple[str, str]:
    check_versions(settings)
    return OK, f"{WAREHOUSE_VERSION}, or no table yet"


def _kinesis(stream: Stream, facts: Callable[[], StreamFacts]) -> tuple[str, str]:
    found = facts()
    differs = retention_note(found.retention // timedelta(seconds=1), stream.retention)
    if differs is not None:
        return WARN, differs
    shards = counted(len(found.shards), "shard")
    return OK, f"{stream.stream_name}: {shards}, {found.retention} of records"


def _repair(stream: Stream, facts: Callable[[], StreamFacts]) -> tuple[str, str]:
    try:
        kept = facts().retention
    except ShardauditError:
        if stream.retention is None:
            raise
        kept = stream.retention
    note = too_short(kept, read_share=stream.backfill.read_share)
    return (OK, f"fits into {length(kept)} of retention") if note is None else (WARN, note)


def _traces(settings: Settings, stream: Stream) -> tuple[str, str]:
    return _counted(settings, stream.traces.path)


def _sink(settings: Settings, stream: Stream) -> tuple[str, str]:
    sink = stream.sink
    if sink.place is not None:
        return OK, f"is what {sink.place} traces as sent"
    columns = sink_columns(settings.aws, sink)
    if columns is None:
        return _counted(settings, sink.path)
    wanted = {n: sink.columns.get(n, n) for n in SINK_COLUMNS if n not in sink.without}
    absent = {name: column for name, column in wanted.items() if column not in columns}
    told = ", ".join(f"{column} (for {name})" for name, column in absent.items())
    if absent.keys() & {*REQUIRED, *sink.columns}:
        return FAIL, f"has no column {told}; it has {', '.join(columns)}"
    if absent.keys() - {"arrived_at"}:
        return WARN, f"is audited without {told}; it has {', '.join(columns)}"
    return OK, f"{sink.path} is a Delta table with the columns that are wanted"


def _cells(settings: Settings, name: str) -> tuple[str, str]:
    eras, wanted = read_eras(settings, name), settings.stream(name).cell_shape
    if eras.newest != wanted:
        since = "a day on that the next ingest that reads something says"
        return WARN, f"{eras.newest}; {wanted} holds from {since}"
    return OK, eras.note(now()) or str(wanted)


def _counted(settings: Settings, place: str) -> tuple[str, str]:
    files, links = count_files(settings.aws, place), links_below(place)
    more = " or more" if files == SAMPLE else ""
    found = f"{place} holds {counted(files, 'file')}{more}"
    if links:
        told = f"{len(links):,}, as {links[0]}"
        found += f"; links in it are not followed ({told}): put the files themselves there"
    return (WARN if links or not files else OK), found
