"""Looks whether everything that an audit needs is there; each line says the cure."""

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from importlib.metadata import Distribution, distribution, version
from pathlib import Path

from rich.console import Group
from rich.text import Text

from shardaudit.adapters.aws.kinesis import kinesis_client, kinesis_errors, stream_facts
from shardaudit.adapters.clock import now
from shardaudit.adapters.engine.jars import FETCH, fetch_jars, jar_problems
from shardaudit.adapters.engine.light import LIGHT, light_choice
from shardaudit.adapters.engine.requirements import (
    INSTALL,
    SUPPORTED,
    embedded_server,
    java_version,
    other_people,
    require_plain_path,
)
from shardaudit.adapters.suites import understood_suites
from shardaudit.cli.command import CommandContext, Reply
from shardaudit.model.audit_id import newest_audit
from shardaudit.model.config.choices import EngineName
from shardaudit.model.config.parts import Embedded
from shardaudit.model.config.settings import Settings, Stream
from shardaudit.model.errors import ConfigError, ShardauditError
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.input_columns import REQUIRED, SINK_COLUMNS
from shardaudit.model.tables.table import WAREHOUSE_VERSION
from shardaudit.model.words import counted, length
from shardaudit.report.next_steps import retention_note, too_short
from shardaudit.report.plain import harmless
from shardaudit.report.sizing import day_words, usual_day
from shardaudit.store.audits import audits_of
from shardaudit.store.health_times import read_health
from shardaudit.store.migrations import check_versions
from shardaudit.store.probes import SAMPLE, count_files, probe_warehouse, sink_columns

EXAMPLES = """\
  shardaudit doctor
  shardaudit --config /etc/shardaudit.toml doctor --json
  shardaudit doctor --fetch-jars                          # once, where pip installed it
  shardaudit doctor --size                                # what a day of each stream asks for
"""
OK, WARN, FAIL = "ok", "warn", "fail"
_SHOWN = 3  # accounts of other people
_STYLES = {OK: "green", WARN: "yellow", FAIL: "bold red"}


@dataclass(frozen=True, slots=True)
class Line:
    """One check: how it went, what was found, and what cures it when it is not ok."""

    check: str
    level: str
    found: str
    cure: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `doctor`."""
    text = "fetches Apache Spark's jars (25 MB) first, where they lack, and checks their hashes"
    parser.add_argument("--fetch-jars", action="store_true", help=text)
    text = "says also what a day of each stream asks for, reckoned from its newest audit"
    parser.add_argument("--size", action="store_true", help=text)


def run(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    """Checks the configuration, then the machine, then what the configuration names."""
    if arguments.fetch_jars and jar_problems(["spark"]):
        fetch_jars("spark")
    exit_code = ExitCode.FAILED
    try:
        settings = context.settings()
    except ConfigError as error:
        wrong = Line("configuration", FAIL, str(error), "edit the file")
        lines, exit_code = [wrong, _java(), _jars()], error.exit_code
    else:
        streams = ", ".join(settings.streams) or "no streams"
        lines = [
            Line("configuration", OK, f"{context.config}: {streams}"),
            *_engine(settings, asked=context.engine),
        ]
        lines += [_expectations(settings), *_outside(settings)]
        if arguments.size:
            lines += _sizes(settings)
    healthy = all(line.level != FAIL for line in lines)
    return Reply(
        document={"checks": lines, "healthy": healthy},
        view=Group(*(_view(line) for line in lines)),
        exit_code=ExitCode.DONE if healthy else exit_code,
    )


def _engine(settings: Settings, *, asked: str | None) -> Iterator[Line]:
    """What runs the commands, and what it needs; Apache Spark runs at least the repairs."""
    yield from pyspark_line(distribution("pyspark"))
    if settings.engine is EngineName.SPARK:
        spark = f"Apache Spark {version('pyspark')}"
        yield Line("engine", OK, spark)
        yield from (_light(settings, spark, asked=asked), _java(), _jars())
        return
    yield _looked(
        "engine",
        partial(_embedded, settings),
        cure='set engine = "spark", or install pysail',
    )
    yield port_line(settings.embedded, other_people())
    for line in (_java(), _jars()):
        cure = line.cure and f"only repairs need it (backfill run, dedupe run): {line.cure}"
        yield Line(line.check, WARN if line.level == FAIL else line.level, line.found, cure)


def _light(settings: Settings, spark: str, *, asked: str | None) -> Line:
    """What runs the commands that read little, as long as they do."""
    commands = ", ".join(sorted(LIGHT))
    chosen = light_choice("watch", settings, asked=asked, reads=lambda: 0)
    if chosen.settings.engine is EngineName.EMBEDDED:
        return Line(
            "light commands", OK, f"{commands}: {embedded_server()[1]}, if they read little"
        )
    because = f", as {chosen.because}" if chosen.because else ""
    return Line("light commands", OK, f"{commands}: {spark}{because}")


def pyspark_line(pyspark: Distribution) -> Iterator[Line]:
    """A line where another package wrote over pyspark's files: then neither engine starts."""
    file = Path(str(pyspark.locate_file("pyspark/version.py")))
    found = re.search(r"__version__.*['\"](.+)['\"]", file.read_text())
    if found and found[1] != pyspark.version:
        said = f"{pyspark.version} is installed, but its files are of {found[1]}: "
        cure = f"`pip install --force-reinstall --no-deps pyspark=={pyspark.version}`"
        yield Line("pyspark", FAIL, f"{said}pyspark-client has the same", cure)


def _embedded(settings: Settings) -> tuple[str, str]:
    require_plain_path(settings.warehouse)
    limit = f"{settings.embedded.memory / 2**30:g} GiB of memory"
    return OK, f"{embedded_server()[1]}, within {limit}"


def port_line(embedded: Embedded, others: Sequence[str]) -> Line:
    """Whether other people could reach the embedded engine, which asks for no password."""
    if not others:
        return Line("engine's port", OK, "nobody else has an account here that can log in")
    named = ", ".join(others[:_SHOWN]) + (", …" if len(others) > _SHOWN else "")
    found = f"other people can log in here: {named}"
    if embedded.shared_machine:
        return Line("engine's port", OK, f"{found}; embedded.shared_machine accepts that")
    cure = 'set engine = "spark", or embedded.shared_machine = true if they may act as you'
    return Line("engine's port", FAIL, f"it has no password, and {found}", cure)


def _java() -> Line:
    found, wanted = java_version(), " or ".join(map(str, SUPPORTED))
    if found is None:
        return Line("Java", FAIL, "none on JAVA_HOME or the path", INSTALL)
    if found not in SUPPORTED:
        return Line("Java", FAIL, f"{found}, wanted {wanted}", INSTALL)
    return Line("Java", OK, str(found))


def _jars() -> Line:
    problems = jar_problems(["spark"])
    if problems:
        return Line("jars", FAIL, f"{problems[0]} ({len(problems)} in all)", FETCH)
    return Line("jars", OK, "all there, with the hashes of jars.lock")


def _expectations(settings: Settings) -> Line:
    cure = "edit the file: docs/gates.md says what a suite may hold"
    return _looked("expectations", partial(_suites, settings), cure=cure)


def _suites(settings: Settings) -> tuple[str, str]:
    understood_suites(settings.expectations)
    return OK, f"the suites of {settings.expectations or 'shardaudit'} are understood"


def _outside(settings: Settings) -> Iterator[Line]:
    yield _looked(
        "warehouse",
        partial(_warehouse, settings),
        cure="check [aws] and the credentials, or make the place writable for this user",
    )
    yield _looked(
        "warehouse's version",
        partial(_version, settings),
        cure="an earlier one: `shardaudit migrate`; a later one: install what wrote it",
    )
    for name, stream in settings.streams.items():
        yield from _of_stream(settings, name, stream)


def _of_stream(settings: Settings, name: str, stream: Stream) -> Iterator[Line]:
    yield _looked(
        f"{name}: Kinesis",
        partial(_kinesis, settings, stream),
        cure="check [aws]; where Kinesis cannot be asked set `retention` to the stream's own",
        without=FAIL if stream.retention is None else WARN,
    )
    yield _looked(
        f"{name}: time to repair",
        partial(_repair, settings, stream),
        cure="extend the stream's retention, audit more often, or raise backfill.read_share",
        without=WARN,
    )
    yield _looked(
        f"{name}: traces",
        partial(_traces, settings, stream),
        cure="check traces.path, its rights, and that the producers write there",
    )
    yield _looked(
        f"{name}: sink",
        partial(_sink, settings, stream),
        cure="check sink.path, its rights, sink.format and sink.columns",
    )
    yield _looked(
        f"{name}: health",
        partial(_health, settings, name),
        cure="switch on the DAGs nightly_audit and retention_watch, or look at their last runs",
        without=WARN,
    )


def _health(settings: Settings, stream: str) -> tuple[str, str]:
    at = now()
    health = read_health(settings, stream, now=at)
    return (WARN if health.troubles(at) else OK), health.sentence(at)


def _sizes(settings: Settings) -> Iterator[Line]:
    """What a day of each stream asks for."""
    for name in settings.streams:
        yield _looked(
            f"{name}: size",
            partial(_size, settings, name),
            cure='a shorter audit_window, or engine = "spark": docs/sizing.md',
            without=WARN,
        )


def _size(settings: Settings, name: str) -> tuple[str, str]:
    audit = newest_audit(audits_of(settings, name))
    if audit is None:
        return OK, "never audited yet; docs/sizing.md reckons it for 10, 200 and 1,800 shards"
    day = usual_day(audit, looked_at=settings.stream(name).audit_window)
    may_be_too_much = settings.engine is EngineName.EMBEDDED and not day.fits_one_machine
    return (WARN if may_be_too_much else OK), day_words(day)


def _looked(
    check: str, look: Callable[[], tuple[str, str]], *, cure: str, without: str = FAIL
) -> Line:
    """The line of one look; `without` is its level when the place cannot be reached."""
    try:
        level, found = look()
    except ShardauditError as error:
        level, found = without, str(error)
    return Line(check, level, found, "" if level == OK else cure)


def _warehouse(settings: Settings) -> tuple[str, str]:
    probe_warehouse(settings)
    return OK, f"{settings.warehouse} is writable"


def _version(settings: Settings) -> tuple[str, str]:
    check_versions(settings)
    return OK, f"{WAREHOUSE_VERSION}, or no table yet"


def _kinesis(settings: Settings, stream: Stream) -> tuple[str, str]:
    with kinesis_errors(stream.stream_name):
        facts = stream_facts(kinesis_client(settings), stream.stream_name)
    differs = retention_note(facts.retention // timedelta(seconds=1), stream.retention)
    if differs is not None:
        return WARN, differs
    shards = counted(len(facts.shards), "shard")
    return OK, f"{stream.stream_name}: {shards}, {facts.retention} of records"


def _repair(settings: Settings, stream: Stream) -> tuple[str, str]:
    try:
        with kinesis_errors(stream.stream_name):
            kept = stream_facts(kinesis_client(settings), stream.stream_name).retention
    except ShardauditError:
        if stream.retention is None:
            raise
        kept = stream.retention
    note = too_short(kept, read_share=stream.backfill.read_share)
    return (OK, f"fits into {length(kept)} of retention") if note is None else (WARN, note)


def _traces(settings: Settings, stream: Stream) -> tuple[str, str]:
    return _counted(stream.traces.path, count_files(settings.aws, stream.traces.path))


def _sink(settings: Settings, stream: Stream) -> tuple[str, str]:
    sink = stream.sink
    if sink.place is not None:
        return OK, f"is what {sink.place} traces as sent"
    columns = sink_columns(settings.aws, sink)
    if columns is None:
        return _counted(sink.path, count_files(settings.aws, sink.path))
    wanted = {n: sink.columns.get(n, n) for n in SINK_COLUMNS if n not in sink.without}
    absent = {name: column for name, column in wanted.items() if column not in columns}
    told = ", ".join(f"{column} (for {name})" for name, column in absent.items())
    if absent.keys() & {*REQUIRED, *sink.columns}:
        return FAIL, f"has no column {told}; it has {', '.join(columns)}"
    if absent.keys() - {"arrived_at"}:
        return WARN, f"is audited without {told}; it has {', '.join(columns)}"
    return OK, f"{sink.path} is a Delta table with the columns that are wanted"


def _counted(place: str, files: int) -> tuple[str, str]:
    more = " or more" if files == SAMPLE else ""
    return (OK if files else WARN), f"{place} holds {counted(files, 'file')}{more}"


def _view(line: Line) -> Text:
    text = Text(no_wrap=True, overflow="ignore")
    text.append(f"{line.level:<5}", style=_STYLES[line.level])
    text.append(harmless(f"{line.check}: {line.found}"))
    if line.cure:
        text.append(f"\n     -> {harmless(line.cure)}", style="italic")
    return text
