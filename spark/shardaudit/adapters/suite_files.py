"""The suites of `expectations/` as values: read and checked, refused by file and line.

Whether a kind of expectation exists and takes its settings, only `quality` can tell.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

import shardaudit
from shardaudit.model.config.fields import Text, explain_invalid, first_mistake, one_of
from shardaudit.model.errors import ConfigError
from shardaudit.model.gate import CONTRACTS, Contract, Expectation, Severity, Suite

_COLUMNS = ("column", "column_A", "column_B", "column_list", "column_set")


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    type: Annotated[str, Field(pattern="^expect_[a-zA-Z_]+$")]
    kwargs: dict[str, Any]  # Any: what the type takes, which Great Expectations itself checks
    severity: Literal["error", "warn"]
    says: Text
    where: Text | None = None
    advice: Text | None = None


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    expectations: list[_Entry]


def load_suites(folder: Path | None) -> list[Suite]:
    """The suites of a folder, one per contract; without a folder those that are shipped.

    Raises:
        ConfigError: a file is missing, unknown, or wrong: which, in which line, what would do.
    """
    place = folder or _shipped()
    names = sorted(file.stem for file in place.glob("*.y*ml"))
    known = [contract.name for contract in CONTRACTS]
    for name in names:
        if name not in known:
            raise ConfigError(str(place / f"{name}.yaml"), name, one_of(name, known))
    return [_suite(contract, place / f"{contract.name}.yaml") for contract in CONTRACTS]


def _shipped() -> Path:
    """In the wheel beside the code; in a checkout at the top."""
    package = Path(shardaudit.__file__).parent
    installed = package / "expectations"
    return installed if installed.is_dir() else package.parents[1] / "expectations"


def _suite(contract: Contract, file: Path) -> Suite:
    wanted = f"a suite file ({contract.name}: {contract.row}); `expectations: []` checks nothing"
    try:
        text = file.read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
        content = yaml.load(text, Loader=yaml.CSafeLoader)
    except OSError as error:
        raise ConfigError(str(file), error.strerror, wanted) from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{file}:{line}", error.problem, "YAML") from error
    except (ValueError, yaml.YAMLError) as error:  # no UTF-8, no such day, a control character
        raise ConfigError(str(file), str(error).splitlines()[0], "YAML in UTF-8") from error
    if node is None:
        raise ConfigError(f"{file}:1", "nothing", wanted)
    _refuse_doubles(node, file)
    try:
        read = _File.model_validate(content)
    except ValidationError as error:
        line = _line(node, first_mistake(error)["loc"])
        raise explain_invalid(error, file=f"{file}:{line}", model=_File) from error
    found = []
    for number, entry in enumerate(read.expectations):
        _refuse_columns(entry, contract, node=node, number=number, file=file)
        found.append(_expectation(entry, _line(node, ("expectations", number))))
    return Suite(contract, str(file), tuple(found))


def _expectation(entry: _Entry, line: int) -> Expectation:
    return Expectation(
        line=line,
        kind=entry.type,
        settings={name: _in_utc(value) for name, value in entry.kwargs.items()},
        severity=Severity(entry.severity),
        says=entry.says.strip(),
        advice=entry.advice and entry.advice.strip(),
        where=entry.where,
    )


def _in_utc(value: object) -> object:
    """YAML reads a time without a zone as one of nowhere; a time of ours is UTC."""
    is_naive = isinstance(value, datetime) and value.tzinfo is None
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and is_naive else value


def _refuse_columns(
    entry: _Entry, contract: Contract, *, node: yaml.Node, number: int, file: Path
) -> None:
    for key in _COLUMNS:
        named = entry.kwargs.get(key, [])
        for column in named if isinstance(named, list) else [named]:
            if column not in contract.columns:
                line = _line(node, ("expectations", number, "kwargs", key))
                wanted = one_of(str(column), contract.columns)
                raise ConfigError(f"{file}:{line}: {key}", column, wanted)


def _refuse_doubles(node: yaml.Node, file: Path) -> None:
    """YAML's own readers let the last of two equal keys win in silence."""
    if isinstance(node, yaml.MappingNode):
        seen: set[object] = set()
        for key, value in node.value:
            if key.value in seen:
                where = f"{file}:{key.start_mark.line + 1}"
                raise ConfigError(where, f"{key.value} a second time", "each key once")
            seen.add(key.value)
            _refuse_doubles(value, file)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_doubles(item, file)


def _line(node: yaml.Node, path: Sequence[int | str]) -> int:
    """The line of what a path leads to, or of the last thing on the way that is there."""
    line = node.start_mark.line + 1
    for part in path:
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            node = node.value[part]
            line = node.start_mark.line + 1
        elif isinstance(node, yaml.MappingNode):
            pair = next((pair for pair in node.value if pair[0].value == part), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
    return line
