"""Parts of the configuration: inputs, AWS, what runs it, who is told, how messages come back."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from shardaudit.model.config.choices import (
    Approval,
    BackfillMode,
    EngineName,
    PositionSource,
    SinkFormat,
    TraceFormat,
)
from shardaudit.model.config.fields import (
    SHARE_TRACED,
    Decoder,
    JsonPath,
    Name,
    Place,
    PositiveShare,
    RouteShare,
    SizeBytes,
    Target,
    Text,
    Url,
    Variable,
    one_of,
)
from shardaudit.model.errors import ConfigError
from shardaudit.model.input_columns import OPTIONAL, SINK_COLUMNS, TRACE_COLUMNS
from shardaudit.model.route.route import RoutePlace
from shardaudit.model.tables.table import INTERNAL_PREFIX

CONFIG = "SHARDAUDIT_CONFIG"  # in the environment: names the shardaudit.toml, for Airflow, too
ENGINE = "SHARDAUDIT_ENGINE"  # in the environment: comes before the configuration's
NAMED_JARS = "spark.jars"  # of [spark]: files beside those that we bring


class Frozen(BaseModel):
    """What is read from the file, once: no key is unknown, no value changes."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Traces(Frozen):
    """The producers' logs. `columns`: standard name -> column of the input, where they differ."""

    path: Place
    format: Annotated[TraceFormat, Field(strict=False)] = TraceFormat.JSON
    columns: dict[str, Text] = {}

    @field_validator("columns")
    @classmethod
    def _columns(cls, columns: dict[str, str]) -> dict[str, str]:
        return _known_columns(columns, TRACE_COLUMNS)


class Sink(Frozen):
    """The lake table; with `place` what that place of the route hands over.

    `without`: standard names of what it had once and has no more; `derived`: columns that a
    backfill computes, as Spark SQL.
    """

    path: Place
    place: Name | None = None
    format: Annotated[SinkFormat, Field(strict=False)] = SinkFormat.DELTA
    exclusive: bool = False
    columns: dict[str, Text] = {}
    without: list[Text] = []
    derived: dict[str, Text] = {}

    @field_validator("columns")
    @classmethod
    def _columns(cls, columns: dict[str, str]) -> dict[str, str]:
        return _known_columns(columns, SINK_COLUMNS)

    @property
    def mapped(self) -> dict[str, str]:
        """`columns`, but for those of what it has no more."""
        return {name: of for name, of in self.columns.items() if name not in self.without}

    @field_validator("without")
    @classmethod
    def _without(cls, names: list[str]) -> list[str]:
        for name in names:
            if name not in OPTIONAL:
                raise ConfigError("", name, one_of(name, OPTIONAL))
        return names


class Location(Frozen):
    """A place between producer and sink. `share`: of what arrives there, passed on."""

    after: list[Text]
    share: RouteShare = 1.0

    @property
    def in_route(self) -> RoutePlace:
        """The place as its route has it."""
        if self.share == SHARE_TRACED:
            return RoutePlace(tuple(self.after), tells=True)
        return RoutePlace(tuple(self.after), self.share)


Service = Literal["s3", "kinesis", "dynamodb"]


class Aws(Frozen):
    """Where AWS is. Credentials come from the usual chain, never from here."""

    region: Text | None = None
    endpoint_url: Url | None = None
    endpoints: dict[Service, Url] = {}

    def endpoint(self, service: Service) -> str | None:
        """The address of a stand-in for the service; None means AWS itself."""
        return self.endpoints.get(service, self.endpoint_url)


class Embedded(Frozen):
    """The engine in the process. `memory`: of all of it; `shared_machine`: others may log in."""

    memory: Annotated[SizeBytes, Field(ge=2**30)] = 3 * 2**30
    shared_machine: bool = False


def asked_engine(name: str) -> EngineName:
    """The engine of that name, asked for outside of the configuration.

    Raises:
        ConfigError: there is none.
    """
    if name not in set(EngineName):
        raise ConfigError(f"--engine or ${ENGINE}", name, one_of(name, list(EngineName)))
    return EngineName(name)


class Notify(Frozen):
    """Each key that is given is one more receiver; addresses and secrets are in the connection."""

    slack: Text | None = None
    http: Text | None = None
    smtp: Text | None = None
    mail_to: list[Text] = []

    @model_validator(mode="after")
    def _mail_has_both_ends(self) -> Self:
        if bool(self.mail_to) != (self.smtp is not None):
            raise ConfigError("", "smtp or mail_to alone", "both of them, or none")
        return self


class Positions(Frozen):
    """Who says how far the consumer is: the sink itself, a KCL lease table or a file."""

    source: Annotated[PositionSource, Field(strict=False)] = PositionSource.SINK
    table: Text | None = None
    path: Place | None = None

    @model_validator(mode="after")
    def _only_what_the_source_needs(self) -> Self:
        wanted = {PositionSource.KCL: {"table"}, PositionSource.FILE: {"path"}}
        needed = wanted.get(self.source, set())
        given = {name for name in ("table", "path") if getattr(self, name) is not None}
        if given != needed:
            raise ConfigError(
                "",
                f"source = {self.source} with {' and '.join(given) or 'nothing else'}",
                f"source = {self.source} with {' and '.join(needed) or 'nothing else'}",
            )
        return self


class Backfill(Frozen):
    """How lost messages come back. `mode` absent: merge for Delta, append for Parquet.

    `fanout`: read by a consumer of our own, which costs money and takes nothing of others' share.
    `republish_to` is a stream, `request_to` an address or a folder: each of its mode alone.
    `request_to_env` names the variable that holds the address instead, `request_token_env` the one
    whose value the address gets as a bearer token.
    `approvers`: the ids in Airflow of who may approve a plan there, none: whoever may answer;
    `four_eyes`: who asked for it may not.
    """

    mode: Annotated[BackfillMode | None, Field(strict=False)] = None
    republish_to: Name | None = None
    request_to: Target | None = None
    request_to_env: Variable | None = None
    request_token_env: Variable | None = None
    decoder: Decoder = "json"
    fields: dict[str, JsonPath] = {}
    read_share: PositiveShare = 0.5
    fanout: bool = False
    approve: Annotated[Approval, Field(strict=False)] = Approval.ALWAYS
    auto_max_bytes: SizeBytes | None = None
    approvers: list[Text] = []
    four_eyes: bool = False

    @model_validator(mode="after")
    def _auto_has_a_ceiling(self) -> Self:
        if self.approve is Approval.AUTO and self.auto_max_bytes is None:
            raise ConfigError("approve", "auto alone", 'also auto_max_bytes, as "1GiB"')
        return self

    @model_validator(mode="after")
    def _mode_has_its_target(self) -> Self:
        targets = {
            BackfillMode.REPUBLISH: ("republish_to", self.republish_to, "the name of a stream"),
            BackfillMode.REQUEST: (
                "request_to",
                self.request_to or self.request_to_env,
                "an address or a folder, or request_to_env",
            ),
        }
        for mode, (name, value, wanted) in targets.items():
            if (value is not None) != (mode is self.mode):
                said = f"mode = {mode} alone has {name}, {wanted}"
                raise ConfigError(name, value, said)
        if self.request_to and self.request_to_env:
            raise ConfigError("request_to_env", self.request_to_env, "it or request_to, not both")
        is_address = self.request_to_env or (self.request_to or "").startswith("http")
        if self.request_token_env and not is_address:
            wanted = "request_to with an address, http or https"
            raise ConfigError("request_token_env", self.request_token_env, wanted)
        return self


def _known_columns(columns: dict[str, str], known: tuple[str, ...]) -> dict[str, str]:
    for standard, column in columns.items():
        if standard not in known:
            raise ConfigError(standard, standard, one_of(standard, known))
        if column.startswith(INTERNAL_PREFIX):
            raise ConfigError(
                standard, column, f"a column that does not begin with {INTERNAL_PREFIX}"
            )
    return columns
