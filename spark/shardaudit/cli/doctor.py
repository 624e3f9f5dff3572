"""Looks whether everything that an audit needs is there; each line says the cure."""

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import Distribution, distribution, version
from pathlib import Path

from rich.console import Group

from shardaudit.adapters.clock import now
from shardaudit.adapters.engine.jars import FETCH, LOG_STORE_KEYS, fetch_jars, jar_problems
from shardaudit.adapters.engine.light import LIGHT, light_choice
from shardaudit.adapters.engine.requirements import (
    INSTALL,
    SUPPORTED,
    embedded_server,
    java_version,
    other_people,
    require_plain_path,
)
from shardaudit.adapters.lake.delta_schema import one_look
from shardaudit.adapters.suites import understood_suites
from shardaudit.cli.command import CommandContext, Reply
from shardaudit.cli.doctor_line import FAIL, OK, WARN, Line, check_view, looked
from shardaudit.cli.doctor_places import place_lines
from shardaudit.model.audit_id import newest_audit
from shardaudit.model.config.choices import EngineName
from shardaudit.model.config.parts import Embedded
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ConfigError
from shardaudit.model.exit_code import ExitCode
from shardaudit.report.sizing import day_words, usual_day
from shardaudit.store.audits import audits_of

EXAMPLES = """\
  shardaudit doctor
  shardaudit --config /etc/shardaudit.toml doctor --json
  shardaudit doctor --fetch-jars                          # once, where pip installed it
  shardaudit doctor --size                                # what a day of each stream asks for
"""
_SHOWN = 3  # accounts of other people


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
        with one_look():
            lines += [_expectations(settings), *place_lines(settings)]
        if arguments.size:
            lines += _sizes(settings)
    healthy = all(line.level != FAIL for line in lines)
    return Reply(
        document={"checks": lines, "healthy": healthy},
        view=Group(*(check_view(line) for line in lines)),
        exit_code=ExitCode.DONE if healthy else exit_code,
    )


def _engine(settings: Settings, *, asked: str | None) -> Iterator[Line]:
    """What runs the commands, and what it needs; Apache Spark runs at least the repairs."""
    yield from pyspark_line(distribution("pyspark"))
    needs = (_java(), _jars(), *_log_stores(settings))
    if settings.engine is EngineName.SPARK:
        spark = f"Apache Spark {version('pyspark')}"
        yield Line("engine", OK, spark)
        yield from (_light(settings, spark, asked=asked), *needs)
        return
    yield looked(
        "engine",
        partial(_embedded, settings),
        cure='set engine = "spark", or install pysail',
    )
    yield port_line(settings.embedded, other_people())
    for line in needs:
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


def _log_stores(settings: Settings) -> Iterator[Line]:
    """Whether Apache Spark loads what Delta is told to commit by; it is started for that alone."""
    named = {key: name for key, name in settings.spark.items() if key.startswith(LOG_STORE_KEYS)}
    if named:
        cure = "add the jars, or leave the setting out: docs/configuration.md says which"
        yield looked("log store", partial(_load, settings, named), cure=cure)


def _load(settings: Settings, named: Mapping[str, str]) -> tuple[str, str]:
    # The doctor has to speak where PySpark cannot be imported.
    from shardaudit.adapters.engine.door import started  # noqa: PLC0415
    from shardaudit.adapters.engine.engine_errors import spark_errors  # noqa: PLC0415

    with spark_errors(), started(settings.with_engine(EngineName.SPARK), app="shardaudit doctor"):
        return OK, f"{', '.join(sorted(named.values()))} can be loaded"


def _expectations(settings: Settings) -> Line:
    cure = "edit the file: docs/gates.md says what a suite may hold"
    return looked("expectations", partial(_suites, settings), cure=cure)


def _suites(settings: Settings) -> tuple[str, str]:
    understood_suites(settings.expectations)
    return OK, f"the suites of {settings.expectations or 'shardaudit'} are understood"


def _sizes(settings: Settings) -> Iterator[Line]:
    """What a day of each stream asks for."""
    for name in settings.streams:
        yield looked(
            f"{name}: size",
            partial(_size, settings, name),
            cure='a shorter audit_window, or engine = "spark": docs/sizing.md',
            without=WARN,
        )


def _size(settings: Settings, name: str) -> tuple[str, str]:
    audit = newest_audit(audits_of(settings, name, now=now()))
    if audit is None:
        return OK, "never audited yet; docs/sizing.md reckons it for 10, 200 and 1,800 shards"
    day = usual_day(audit, looked_at=settings.stream(name).audit_window)
    may_be_too_much = settings.engine is EngineName.EMBEDDED and not day.fits_one_machine
    return (WARN if may_be_too_much else OK), day_words(day)
