"""What a person reads when a setting is wrong: file, key, value, what would be accepted."""

from collections.abc import Iterable
from datetime import timedelta
from difflib import get_close_matches
from typing import get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from shardaudit.model.errors import ConfigError


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
