"""The site of `make docs`, without building it: no page is left out, no link leads nowhere."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from shardaudit.model.config.settings import load_settings
from shardaudit.model.tables.all_tables import OF_LEDGER, OF_WATCH
from tools.docs_site import CONFIG, MADE, ROOT, lay_out, linked, pages

NAVIGATION = yaml.safe_load(CONFIG.read_text())["nav"]
README, TUTORIAL = ROOT / "README.md", ROOT / "docs" / "tutorial.md"
LONGEST = {README: 149, TUTORIAL: 120}  # lines
TOP = ("Tutorial", "How-to", "Reference", "Explanation")


def entries(part: Any) -> list[str]:  # as YAML has it
    """The pages of a part of the navigation."""
    if isinstance(part, str):
        return [part]
    parts = part.values() if isinstance(part, dict) else part
    return [page for one in parts for page in entries(one)]


def test_every_page_is_in_the_navigation_once() -> None:
    written = {str(page.relative_to(ROOT)) for page in pages()}
    assert sorted(entries(NAVIGATION)) == sorted(written | MADE.keys())
    assert tuple(name for part in NAVIGATION if isinstance(part, dict) for name in part) == TOP


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_every_link_leads_to_a_file(page: Path) -> None:
    assert [file for file in linked(page) if not file.is_file()] == []


def test_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("[a\nb](x.md#c) ![d](e/f.png) [g](#h) [i](https://j.k)\n```\n[l](m.md)\n```\n")
    assert linked(page) == {tmp_path / "x.md", tmp_path / "e" / "f.png"}


def test_the_pages_lie_as_in_the_repository_with_all_that_they_link_to(tmp_path: Path) -> None:
    lay_out(tmp_path / "pages")
    laid = {str(file.relative_to(tmp_path / "pages")) for file in (tmp_path / "pages").rglob("*.*")}
    assert {"README.md", "docs/pictures/demo.png", "tests/bench/spark_script.py"} <= laid
    commands, tables = (tmp_path / "pages" / path for path in MADE)
    assert "### `shardaudit backfill run`\n\n```text\nusage: " in commands.read_text()
    names = re.findall(r"(?m)^## `(\w+)`$", tables.read_text())
    assert names == [table.name for table in (*OF_LEDGER, *OF_WATCH)]


@pytest.mark.parametrize("page", LONGEST, ids=lambda page: page.stem)
def test_it_is_short_enough_to_be_read(page: Path) -> None:
    assert len(page.read_text().splitlines()) <= LONGEST[page]


@pytest.mark.parametrize("page", [README, TUTORIAL], ids=lambda page: page.stem)
def test_the_configuration_that_it_shows_is_taken(page: Path, tmp_path: Path) -> None:
    [shown] = re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL)
    file = tmp_path / "shardaudit.toml"
    file.write_text(shown)
    assert list(load_settings(file).streams) == ["events"]
