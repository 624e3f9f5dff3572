"""Frozen settings, one class per concern, built once from `shardaudit.toml`.

Everything in docs/configuration.md is accepted and checked here, before Spark starts.
Credentials have no place in it: they come from the usual AWS chain.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from shardaudit.model.config.choices import BackfillMode, EngineName, SinkFormat
from shardaudit.model.config.eras import CellShape
from shardaudit.model.config.fields import (
    Duration,
    LostShare,
    Name,
    Place,
    SampleRate,
    Share,
    SparkText,
    Text,
    WarehousePlace,
    delta_place,
    explain_invalid,
    one_of,
)
from shardaudit.model.config.keep import Keep
from shardaudit.model.config.parts import (
    Aws,
    Backfill,
    Embedded,
    Frozen,
    Location,
    Notify,
    Positions,
    Sink,
    Traces,
    asked_engine,
)
from shardaudit.model.errors import ConfigError
from shardaudit.model.input_columns import trace_columns
from shardaudit.model.retention import MAX_RETENTION
from shardaudit.model.route.route import Route
from shardaudit.model.tables.route_tables import handed_over
from shardaudit.model.window import LONGEST

DAY = timedelta(days=1)
_SECRET_KEY = re.compile(r"(?i)(secret\.?key|access\.?key|session\.?token|password)$")


class Stream(Frozen):
    """One stream: its logs, its sink and what is asked of it.

    `made_from`: the stream whose messages were made into these, where that ends.
    `loss_budget`: of the messages of a month, the share that may be lost.
    `page_resource`: of Airflow's auth manager; who may not GET it does not see it on the page.
    `latency_slo`: nothing reads it; configurations that have it are taken as they are.
    """

    stream_name: Name
    retention: Duration | None = None
    bucket: Duration = timedelta(seconds=60)
    settle_grace: Duration = timedelta(minutes=10)
    latency_slo: Duration = timedelta(minutes=5)
    audit_window: Duration = timedelta(days=7)
    sample_rate: SampleRate = 1.0
    trace_coverage_floor: Share = 0.99
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 0.0
    loss_budget: LostShare | None = None
    page_resource: Text | None = None
    traces: Traces
    sink: Sink
    positions: Positions = Positions()
    backfill: Backfill = Backfill()
    locations: dict[Name, Location] = Field(default_factory=dict)
    made_from: Name | None = None

    @field_validator("bucket")
    @classmethod
    def _divides_a_day(cls, bucket: timedelta) -> timedelta:
        if DAY % bucket:
            raise ConfigError("", bucket, "a length that divides a day, as 60s or 5m")
        return bucket

    @field_validator("retention")
    @classmethod
    def _retention_exists(cls, retention: timedelta | None) -> timedelta | None:
        if retention is not None and retention > MAX_RETENTION:
            raise ConfigError(
                "", retention, f"at most {MAX_RETENTION.days * 24}h, as Kinesis allows"
            )
        return retention

    @field_validator("audit_window")
    @classmethod
    def _window_can_be_audited(cls, audit_window: timedelta) -> timedelta:
        if audit_window > LONGEST:
            raise ConfigError("", audit_window, f"at most {LONGEST.days * 24}h")
        return audit_window

    @model_validator(mode="after")
    def _sink_fits(self) -> Self:
        if self.sink.format is SinkFormat.DELTA:
            delta_place(self.sink.path, where="sink.path")
        formats = {BackfillMode.MERGE: SinkFormat.DELTA, BackfillMode.APPEND: SinkFormat.PARQUET}
        mode, found = self.backfill_mode, self.sink.format
        if found is not formats.get(mode, found):
            other = BackfillMode.APPEND if mode is BackfillMode.MERGE else BackfillMode.MERGE
            raise ConfigError(
                "backfill.mode", f"{mode} into a {found} sink", f"{other}, republish or request"
            )
        return self

    @model_validator(mode="after")
    def _locations_are_a_route(self) -> Self:
        _ = self.route
        return self

    @model_validator(mode="after")
    def _ends_at_its_place(self) -> Self:
        place, mode = self.sink.place, self.backfill.mode
        if place is None:
            return self
        if self.route.last != (place,) or place not in self.locations:
            wanted = f"the one place at the end of the route, not {' and '.join(self.route.last)}"
            raise ConfigError("sink.place", place, wanted)
        if (share := self.locations[place].share) != 1:
            raise ConfigError(f"locations.{place}.share", share, "1: the stream ends there")
        alone = Sink(path=self.sink.path, place=place)
        if further := [name for name, value in alone if value != getattr(self.sink, name)]:
            found = str(getattr(self.sink, further[0]))
            raise ConfigError(
                f"sink.{further[0]}", found, "place alone: it has no table of its own"
            )
        if mode not in {None, BackfillMode.REPUBLISH, BackfillMode.REQUEST}:
            raise ConfigError("backfill.mode", str(mode), "republish or request: a place makes it")
        return self

    @property
    def cell_shape(self) -> CellShape:
        """How ids are to be put into cells."""
        return CellShape(int(self.bucket.total_seconds()), self.sample_rate)

    @property
    def route(self) -> Route:
        """The places between producer and sink, in their order.

        Raises:
            ConfigError: they are no route.
        """
        return Route.of({name: one.in_route for name, one in self.locations.items()})

    @property
    def backfill_mode(self) -> BackfillMode:
        """The mode, when the configuration does not say it the one that its sink has."""
        is_delta = self.sink.format is SinkFormat.DELTA
        return self.backfill.mode or (BackfillMode.MERGE if is_delta else BackfillMode.APPEND)

    def digest(self) -> str:
        """12 hex digits that change whenever anything does that an audit looks at."""
        # What came later is left out where it says nothing: audits are named by the digest.
        said = self.model_dump(mode="json", exclude={"loss_budget"})
        later = [(said, "locations"), (said, "made_from"), (said["sink"], "place")]
        for of, name in [*later, (said["backfill"], "request_to_env")]:
            if not of[name]:
                del of[name]
        canonical = json.dumps(said, sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def read_columns(stream: Stream) -> dict[str, str]:
    """`trace_columns` of a stream."""
    reads_parents = stream.made_from is not None or stream.sink.place is not None
    with_event = bool(stream.locations)
    return trace_columns(stream.traces.columns, with_event=with_event, with_parents=reads_parents)


class Settings(Frozen):
    """The whole file."""

    warehouse: WarehousePlace
    expectations: Place | None = None
    engine: Annotated[EngineName, Field(strict=False)] = EngineName.SPARK
    aws: Aws = Aws()
    spark: dict[str, SparkText] = Field(default_factory=dict)
    embedded: Embedded = Embedded()
    notify: Notify = Notify()
    keep: Keep = Keep()
    streams: dict[Name, Stream]

    @model_validator(mode="before")
    @classmethod
    def _sinks_of_places(cls, raw: object) -> object:
        """A stream that ends at a place has its sink in the warehouse."""
        match raw:
            case {"warehouse": str(warehouse), "streams": dict(streams), **others}:
                found = {
                    name: _with_its_place(name, one, warehouse) for name, one in streams.items()
                }
                return {"warehouse": warehouse, "streams": found, **others}
        return raw

    @model_validator(mode="after")
    def _streams_fit(self) -> Self:
        for name, stream in self.streams.items():
            _check_origins(name, self.streams)
            self.keep.check(name, stream.audit_window, stream.retention)
        return self

    @field_validator("expectations")
    @classmethod
    def _expectations_are_here(cls, expectations: str | None) -> str | None:
        if expectations is not None and expectations.startswith("s3a://"):
            raise ConfigError("", expectations, "a local folder")
        return expectations

    @field_validator("spark")
    @classmethod
    def _spark_without_secrets(cls, spark: dict[str, str]) -> dict[str, str]:
        for key in spark:
            if not key.startswith("spark."):
                raise ConfigError(key, key, 'a key that begins with "spark."')
            if _SECRET_KEY.search(key):
                raise ConfigError(key, key, "no credentials here: use the usual AWS chain")
        return spark

    def stream(self, name: str) -> Stream:
        """The stream of that name in the configuration.

        Raises:
            ConfigError: there is none; says which there are.
        """
        if name not in self.streams:
            raise ConfigError("--stream", name, one_of(name, list(self.streams)))
        return self.streams[name]

    def with_engine(self, asked: str | None) -> Self:
        """The same for the engine that was asked for instead of the file's; None: none was.

        Raises:
            ConfigError: there is no such engine.
        """
        return self if asked is None else self.model_copy(update={"engine": asked_engine(asked)})


def _with_its_place(name: object, stream: object, warehouse: str) -> object:
    match stream:
        case {"sink": {"place": str(place), **others}, **rest}:
            path = f"{warehouse.rstrip('/')}/{handed_over(str(name), place).name}"
            if others.get("path", path) != path:
                where = f"streams.{name}.sink"
                raise ConfigError(where, "path and place", "one of them: a place has no table")
            return {**rest, "sink": {**others, "place": place, "path": path}}
    return stream


def _check_origins(name: str, streams: Mapping[str, Stream]) -> None:
    """A stream is made from one that ends at a place, and not in the end from itself."""
    path = [name]
    while (origin := streams[path[-1]].made_from) is not None:
        where = f"streams.{path[-1]}.made_from"
        if origin not in streams or streams[origin].sink.place is None:
            ending = [one for one, stream in streams.items() if stream.sink.place is not None]
            wanted = f"{one_of(origin, ending)}: a stream whose sink is a place"
            raise ConfigError(where, origin, wanted)
        if origin in path:
            raise ConfigError(where, " made from ".join([*path, origin]), "an order of streams")
        path.append(origin)


def load_settings(path: Path) -> Settings:
    """The settings that a TOML file holds.

    Raises:
        ConfigError: the file cannot be read, or something in it cannot be used.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        wanted = "a readable file (--config FILE, $SHARDAUDIT_CONFIG or ./shardaudit.toml)"
        raise ConfigError(str(path), error.strerror, wanted) from error
    except (ValueError, RecursionError) as error:  # also a path with a NUL, and a number too long
        raise ConfigError(str(path), str(error), "TOML in UTF-8") from error
    try:
        return Settings.model_validate(raw, context={"folder": path.parent.absolute()})
    except ValidationError as error:
        raise explain_invalid(error, file=str(path), model=Settings) from error
