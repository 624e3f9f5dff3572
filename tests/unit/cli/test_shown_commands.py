"""Every `shardaudit …` of README, docs/ and the compose file is one that our parsers take."""

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import yaml

from shardaudit.cli.main import _asked, _command, _options
from tools.docs_site import ROOT, helps, pages

BLOCK = re.compile(r"(?ms)^ *```(\w*)\n(.*?)^ *```$")
LINE = re.compile(r"(?m)(?:^ *|exec [\w-]+ )shardaudit (.+)$")
IN_A_SENTENCE = re.compile(r"`shardaudit ([^`]+)`")
ARGUMENTS = re.compile(r'"entryPointArguments": (\[.*?\])')  # of EMR

LEAST = {"tutorial.md": 7, "deploying.md": 3, "verdicts.md": 4}


def of_a_page(text: str) -> Iterator[list[str]]:
    """The commands of a page, as words."""
    joined = text.replace("\\\n", " ")
    for language, block in BLOCK.findall(joined):
        if language in {"", "sh"}:
            yield from map(words, LINE.findall(block))
            yield from map(json.loads, ARGUMENTS.findall(block))
    for shown in IN_A_SENTENCE.findall(BLOCK.sub("", joined)):
        if "COMMAND" not in shown:
            yield words(re.sub(r"[][…]", "", shown))


def words(line: str) -> list[str]:
    """Of one line of a shell, as far as its command goes."""
    found = shlex.split(line, comments=True)
    ends = (n for n, word in enumerate(found) if word in {"|", "||", "&&", ">"})
    return found[: next(ends, len(found))]


def started() -> Iterator[list[str]]:
    """The commands of the compose file."""
    services = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]
    for service in services.values():
        name, *rest = service.get("command", [""])
        if name == "shardaudit":
            yield rest


def examples() -> Iterator[list[str]]:
    """The commands that the helps show."""
    for said in helps().values():
        yield from of_a_page(f"```\n{said}\n```")


def check(lines: Iterable[list[str]]) -> int:
    """How many there are; leaves the process at one that is not taken."""
    found = list(lines)
    for line in found:
        if " ".join(line) not in helps():  # a sentence that names the command alone
            asked = _asked(line)
            _options(asked, _command(asked.command))
    return len(found)


@pytest.mark.parametrize("page", pages(), ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_our_command_line_takes_what_a_page_shows(page: Path) -> None:
    assert check(of_a_page(page.read_text())) >= LEAST.get(page.name, 0)


def test_our_command_line_takes_what_is_started() -> None:
    assert check(started()) == 3


def test_our_command_line_takes_the_examples_of_the_helps() -> None:
    assert check(examples()) > 25


def test_a_command_that_is_not_taken_is_noticed() -> None:
    with pytest.raises(SystemExit):
        check([["audit", "--strem", "events"]])


def test_commands_are_found() -> None:
    toml = "```toml\nshardaudit = 1\n```\n"
    sh = "```sh\n  shardaudit c \\\n   d  # e\nx exec f shardaudit g | h\n```\n"
    assert list(of_a_page(f"{toml}`shardaudit a --b …`\n{sh}")) == [["c", "d"], ["g"], ["a", "--b"]]
