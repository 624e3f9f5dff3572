"""The runbook quotes what the product says: whoever searches for a sentence must find it."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from shardaudit.model.verdict import Verdict

ROOT = Path(__file__).parents[2]
SAID_WITH = re.compile(r"^\| (`[^|]+`[^|]*)\|", re.MULTILINE)
LEAST = 5  # letters of a piece that can be searched for


@cache
def spoken() -> str:
    """Every text in the sources."""
    texts = []
    for file in [*(ROOT / "spark").rglob("*.py"), *(ROOT / "dags").glob("*.py")]:
        nodes = ast.walk(ast.parse(file.read_text()))
        texts += [
            n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)
        ]
    return "\n".join(texts)


def quoted(least: int = LEAST) -> list[str]:
    """The pieces of the sentences in the first columns of the runbook's tables."""
    book = (ROOT / "docs" / "runbook.md").read_text()
    cells = " ".join(SAID_WITH.findall(book))
    sentences = re.findall(r"`([^`]+)`", cells)
    return [p.strip() for s in sentences for p in s.split("…") if len(p.strip()) >= least]


@pytest.mark.parametrize("piece", quoted())
def test_the_product_says_it(piece: str) -> None:
    assert piece in spoken()


def test_each_verdict_that_is_not_ok_can_be_looked_up() -> None:
    assert {verdict.value for verdict in Verdict} - {"ok"} <= set(quoted(least=1))


def test_there_is_much_to_look_up() -> None:
    assert len(quoted()) > 25
