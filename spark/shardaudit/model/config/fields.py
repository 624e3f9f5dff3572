"""The kinds of value that a setting can have, and what a person reads when one is wrong.

Each says what would be accepted; `config_error` adds the file and the key.
"""

import re
from collections.abc import Iterable
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal, TypeGuard, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import ErrorDetails

from shardaudit.model.config.choices import NAME_PATTERN
from shardaudit.model.errors import ConfigError
from shardaudit.model.sampling import LEAST_RATE

SHARE_TRACED: Literal["traced"] = "traced"  # what is left out is told, each message
_TIME_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_SIZE_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
# An address' code for a character, and what no address has.
_UNLIKE_DELTA = re.compile(r"%[0-9A-Fa-f]{2}|\\|[\x00-\x1f\x7f]")


def parse_duration(text: str, *, where: str) -> timedelta:
    """The length that a text as `60s`, `10m`, `168h` or `7d` names; always above zero."""
    match = re.fullmatch(r"([1-9]\d{0,8})([smhd])", text)
    if match is None:
        raise ConfigError(where, text, "a whole number with a unit s, m, h or d, as 10m")
    return timedelta(**{_TIME_UNITS[match[2]]: int(match[1])})


def _duration(value: object) -> object:
    wanted = "a text with a whole number and a unit s, m, h or d, as 10m"
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise ConfigError("", value, wanted)
    return parse_duration(value, where="")


def _size_bytes(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = re.fullmatch(r"([1-9]\d{0,11})([KMGT]iB|B)", value) if isinstance(value, str) else None
    if match is None:
        raise ConfigError("", value, "a whole number with a unit B, KiB, MiB, GiB, TiB, as 1GiB")
    return int(match[1]) * _SIZE_UNITS[match[2]]


def _place(value: str, info: ValidationInfo) -> str:
    """A folder: `s3a://bucket/…`, or a local one, relative to the configuration's folder."""
    scheme, colon, rest = value.partition("://")
    if scheme == "s3a" and re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/.*)?", rest):
        return value.rstrip("/")
    if scheme == "file" and rest.startswith("/"):
        return rest.rstrip("/") or "/"
    if colon or not value.strip():
        raise ConfigError("", value, "s3a://bucket/folder, file:///folder or a local folder")
    folder: Path = (info.context or {}).get("folder", Path())
    return str(folder / value)


def delta_place(place: str, *, where: str = "") -> str:
    """The place of a Delta table.

    Raises:
        ConfigError: delta-rs (1.6) would take it for another one, or for none.
    """
    found = _UNLIKE_DELTA.search(place)
    if found is not None:
        wanted = f"a path without {found[0]!r}, which Delta's reader takes for something else"
        raise ConfigError(where, place, f"{wanted}: rename that folder, or link to it")
    return place


def _url(value: str) -> str:
    if re.fullmatch(r"https?://[^\s/@?#]+/?", value) is None:
        raise ConfigError("", value.rpartition("@")[2], "http://host:port without user or path")
    return value.rstrip("/")


def _spark_text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        raise ConfigError("", "a table", 'the whole key in quotes: "spark.sql.x" = …')
    return str(value) if isinstance(value, int | float) else value


def _target(value: str, info: ValidationInfo) -> str:
    """An address to post to, or a folder."""
    if value.startswith(("http://", "https://")):
        if re.fullmatch(r"https?://[^\s/@?#]+(/[^\s@?#]*)?", value) is None:
            shown = value.rpartition("@")[2].partition("?")[0]
            raise ConfigError("", shown, "http://host/path without user, query or fragment")
        return value
    return _place(value, info)


def _route_share(value: object) -> object:
    if value == SHARE_TRACED or (_is_number(value) and 0 < float(value) <= 1):
        return value if value == SHARE_TRACED else float(value)
    raise ConfigError("", value, f'a number above 0 and at most 1, or "{SHARE_TRACED}"')


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


Duration = Annotated[timedelta, BeforeValidator(_duration)]
SizeBytes = Annotated[int, BeforeValidator(_size_bytes), Field(gt=0)]
Place = Annotated[str, AfterValidator(_place)]
WarehousePlace = Annotated[Place, AfterValidator(delta_place)]
Url = Annotated[str, AfterValidator(_url)]
Target = Annotated[str, AfterValidator(_target)]
Text = Annotated[str, StringConstraints(min_length=1)]
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
SparkText = Annotated[str, BeforeValidator(_spark_text)]
Decoder = Annotated[str, StringConstraints(pattern=r"^(json|[A-Za-z_][\w.]*:[A-Za-z_]\w*)$")]
JsonPath = Annotated[str, StringConstraints(pattern=r"^\$($|\.|\[)")]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Share = Annotated[float, Field(ge=0, le=1)]
PositiveShare = Annotated[float, Field(gt=0, le=1)]
SampleRate = Annotated[float, Field(ge=LEAST_RATE, le=1)]
RouteShare = Annotated[float | Literal["traced"], BeforeValidator(_route_share)]
LostShare = Annotated[float, Field(gt=0, lt=1)]


def one_of(found: str, known: Iterable[str]) -> str:
    """The accepted words as a text, with the one that was probably meant."""
    known = sorted(known)
    close = get_close_matches(found, known, n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    return f"one of {', '.join(known)}{hint}" if known else "nothing: none are known"


def explain_invalid(error: ValidationError, *, file: str, model: type[BaseModel]) -> ConfigError:
    """The first mistake that pydantic found, in our words.

    Values of unknown keys are not repeated: somebody may have put a credential there.
    """
    first = first_mistake(error)
    path = [str(part) for part in first["loc"] if part != "[key]"]
    where = f"{file}: {'.'.join(path)}"
    own = first.get("ctx", {}).get("error")
    if isinstance(own, ConfigError):
        found = first["input"] if isinstance(own.found, timedelta) else own.found
        return ConfigError(f"{where}.{own.where}".rstrip("."), found, own.wanted)
    match first["type"]:
        case "extra_forbidden":
            return ConfigError(where, path[-1], one_of(path[-1], _fields_beside(path, model)))
        case "missing":
            return ConfigError(where, "nothing", "a value: this key is required")
        case "enum" | "literal_error":
            return ConfigError(where, first["input"], one_of(str(first["input"]), _choices(first)))
    return ConfigError(where, first["input"], _wanted(first))


def first_mistake(error: ValidationError) -> ErrorDetails:
    """The mistake that is told: a mistyped key is also a missing one, and the typo says more."""
    mistakes = error.errors(include_url=False)
    return min(mistakes, key=lambda mistake: mistake["type"] != "extra_forbidden")


def _choices(details: ErrorDetails) -> list[str]:
    """The words of pydantic's "'a', 'b' or 'c'"."""
    expected = str(details.get("ctx", {})["expected"])
    return expected.replace("'", "").replace(" or ", ", ").split(", ")


def _wanted(details: ErrorDetails) -> str:
    return (
        details["msg"].removeprefix("Input should be ").replace("String should", "text that should")
    )


def _fields_beside(path: list[str], model: type[BaseModel]) -> list[str]:
    """The keys that the table accepts in which the last part of the path stands."""
    parts = iter(path[:-1])
    for part in parts:
        kind = model.model_fields[part].annotation
        if get_origin(kind) in {dict, list}:
            kind = get_args(kind)[-1]
            next(parts)  # the name that the user chose, or the number in the list
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            return []
        model = kind
    return list(model.model_fields)
