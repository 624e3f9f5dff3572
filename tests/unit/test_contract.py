"""`docs/contract.md` promises what there is: tables, closed lists, commands, exit codes, keys.

`docs/design.md` names every table of the warehouse.
"""

import re
from enum import StrEnum
from itertools import takewhile
from pathlib import Path

import pytest
from pydantic import BaseModel

from shardaudit.backfill.rules.planned import WindowState
from shardaudit.model.config.settings import Settings, Stream
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.input_columns import SINK_COLUMNS, TRACE_COLUMNS
from shardaudit.model.tables import (
    audit_tables,
    backfill_tables,
    gap_tables,
    ledger_tables,
    route_tables,
    watch_tables,
)
from shardaudit.model.tables.table import Table
from shardaudit.model.verdict import Cause, Kind, Level, ShardState, State, Verdict
from tools.docs_site import helps

DOCS = Path(__file__).parents[2] / "docs"
CONTRACT = (DOCS / "contract.md").read_text()
TABLES = {
    value.name: value
    for module in (
        audit_tables,
        backfill_tables,
        gap_tables,
        ledger_tables,
        route_tables,
        watch_tables,
    )
    for value in vars(module).values()
    if isinstance(value, Table)
}
PROMISED = (
    *("findings", "transitions", "gaps", "cells"),
    *("audits", "backfills", "quarantine", "shards"),
)
LISTS: dict[str, type[StrEnum]] = {
    "findings.kind": Kind,
    "findings.cause": Cause,
    "findings.state": State,
    "gaps.state": State,
    "cells.verdict": Verdict,
    "backfills.state": WindowState,
    "shards.state": ShardState,
    "shards.level": Level,
}
OPTION = re.compile(r"--[a-z-]+")


def section(title: str) -> str:
    """What stands under a heading, as far as the next one."""
    return re.split(r"(?m)^#+ ", CONTRACT.partition(f"# {title}\n")[2])[0]


def first_cells(text: str) -> list[str]:
    return re.findall(r"(?m)^\| `([^`]+)` \|", text)


@pytest.mark.parametrize("name", PROMISED)
def test_a_table_has_the_columns_types_and_key_that_are_promised(name: str) -> None:
    said, table = section(f"`{name}`"), TABLES[name]
    block = re.sub(r"\s+", " ", said.split("```")[1]).strip()
    columns = [one.rpartition(" ")[::2] for one in re.split(r", (?![^<]*>)", block)]
    assert columns == [(column, kind) for column, kind, _ in table.columns]
    [key] = re.findall(r"(?m)^Key: (.+?)\.$", said)
    assert re.findall(r"`(\w+)`", key) == list(table.key)


def test_no_other_table_is_promised() -> None:
    assert re.findall(r"(?m)^### `(\w+)`$", CONTRACT) == list(PROMISED)


def test_closed_lists_hold_what_they_say() -> None:
    rows = re.findall(r"(?m)^\| `([\w.]+)` \| (.+?) \|", section("Closed lists"))
    said = {column: re.findall(r"`(\w+)`", values) for column, values in rows}
    assert said == {column: [one.value for one in kind] for column, kind in LISTS.items()}


def options(usage: str) -> tuple[set[str], set[str]]:
    """The options that must be given, and the others: those in brackets or parentheses."""
    required = set(OPTION.findall(re.sub(r"\[[^]]*\]|\([^)]*\)", "", usage)))
    return required, set(OPTION.findall(usage)) - required


def words_of(usage: str) -> str:
    """The command, and its action where it has some: what stands before options and places."""
    return " ".join(takewhile(lambda word: re.fullmatch(r"[a-z][a-z-]*", word), usage.split()))


def test_commands_take_the_options_that_are_promised() -> None:
    text = section("Commands")
    common = set(OPTION.findall(text.partition("Times are")[0]))
    said = {words_of(usage): options(usage) for usage in first_cells(text)}
    of_actions = {words.partition(" ")[0] for words in helps() if " " in words}
    found = {words: options(usage_of(words)) for words in helps().keys() - of_actions - {""}}
    assert said == {
        words: (set(), set()) if words.startswith("simulate") else (required, others - common)
        for words, (required, others) in found.items()
    }


def usage_of(words: str) -> str:
    """What a command, or an action of one, says of its options."""
    return helps()[words].partition("\n\n")[0]


def test_options_of_all_commands_are_those_that_are_promised() -> None:
    said = section("Commands").partition("Times are")[0]
    assert set(OPTION.findall(said)) - {"--help"} == set(OPTION.findall(usage_of("")))


def test_exit_codes_are_those_that_are_promised() -> None:
    codes = [int(code) for code in first_cells(section("Exit codes"))]
    assert codes == [int(code) for code in ExitCode]


def test_input_columns_are_those_that_are_promised() -> None:
    rows = re.findall(r"(?m)^\| (traces|sink) \| (.+?) \|$", section("What comes in"))
    said = {side: tuple(re.findall(r"`(\w+)`", names)) for side, names in rows}
    assert said == {"traces": TRACE_COLUMNS, "sink": SINK_COLUMNS}


def keys(model: type[BaseModel]) -> set[str]:
    """The keys of a part of the file; a part within it is a heading of its own."""
    kinds = {name: field.annotation for name, field in model.model_fields.items()}
    parts = {
        n for n, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, BaseModel)
    }
    return set(kinds) - parts


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("[streams.NAME]", Stream),
        *(
            (f"[streams.NAME.{part}]", Stream.model_fields[part].annotation)
            for part in ("traces", "sink", "positions", "backfill")
        ),
        ("[notify]", Settings.model_fields["notify"].annotation),
        ("[keep]", Settings.model_fields["keep"].annotation),
    ],
)
def test_every_key_of_the_configuration_is_explained(heading: str, model: type[BaseModel]) -> None:
    page = (DOCS / "configuration.md").read_text().partition(f"## `{heading}`\n")[2]
    explained = set(re.findall(r"`(\w+)`", re.split(r"(?m)^## ", page)[0]))
    assert keys(model) - explained == set()


def test_the_design_names_every_table() -> None:
    page = (DOCS / "design.md").read_text().partition("## The tables")[2].partition("\n## ")[0]
    assert sorted(first_cells(page)) == sorted(TABLES)
