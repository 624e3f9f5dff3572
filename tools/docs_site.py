"""`make docs`: README, docs/ and what they link to, as a site in .site/html that needs no network.

The pages lie in it as in the repository, so that their links lead where they do there. Two more are
made from the code: the commands, as they explain themselves, and the tables of the warehouse.
"""

import io
import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout, suppress
from functools import cache
from pathlib import Path

from shardaudit.cli.main import main as shardaudit
from shardaudit.model.tables.all_tables import OF_LEDGER, OF_WATCH
from shardaudit.model.tables.table import Table

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "docs" / "mkdocs.yml"
SITE = ROOT / ".site"
MKDOCS = ROOT / ".cache" / "docs" / "bin" / "mkdocs"
_BLOCK = re.compile(r"(?ms)^ *```.*?^ *```$")
_LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")
_TABLES_HEAD = """\
# Tables of the warehouse

Made from `spark/shardaudit/model/tables/`. On which of them others may rely:
[the contract](contract.md#tables); what a row is: [the design](design.md#the-tables).
"""


def pages() -> list[Path]:
    """The pages that people wrote."""
    written = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "expectations" / "README.md"]
    return [*written, *sorted((ROOT / "docs").rglob("*.md"))]


def linked(page: Path) -> set[Path]:
    """What a page's links to other files lead to, whether it is there or not."""
    links = _LINK.findall(_BLOCK.sub("", page.read_text()))
    return {(page.parent / link).resolve() for link in links}


@cache
def helps() -> dict[str, str]:
    """What each command says of itself, and each action of one; under "" all of them together."""
    found = {"": _help()}
    overview = found[""].partition("commands:\n")[2].partition("\n\n")[0]
    for name in re.findall(r"(?m)^  ([\w-]+) ", overview):
        found[name] = _help(name)
        for action in re.findall(r"(?m)^    (\w+) +\w", found[name].partition("ACTION\n")[2]):
            found[f"{name} {action}"] = _help(name, action)
    return found


def _help(*words: str) -> str:
    said = io.StringIO()
    with suppress(SystemExit), redirect_stdout(said):
        shardaudit([*words, "--help"])
    return said.getvalue()


def _commands_page() -> str:
    parts = ["# Commands\n\nAs they explain themselves: `shardaudit COMMAND --help`.\n"]
    for words, said in helps().items():
        marks = "###" if " " in words else "##"
        title = f"shardaudit {words}".strip()
        parts.append(f"{marks} `{title}`\n\n```text\n{said.rstrip()}\n```\n")
    return "\n".join(parts)


def _tables_page() -> str:
    return "\n".join([_TABLES_HEAD, *map(_table, (*OF_LEDGER, *OF_WATCH))])


def _table(table: Table) -> str:
    rows = [
        f"| `{name}` | `{kind}` | {meaning.replace('|', '&#124;')} |"
        for name, kind, meaning in table.columns
    ]
    head = f"## `{table.name}`\n\nKey: {', '.join(f'`{name}`' for name in table.key)}."
    return "\n".join([head, "", "| column | type | |", "|---|---|---|", *rows, ""])


MADE = {"docs/commands.md": _commands_page, "docs/tables.md": _tables_page}


def lay_out(folder: Path) -> None:
    """Writes the pages, and the files that they link to, into a folder of their own."""
    shutil.rmtree(folder, ignore_errors=True)
    written = pages()
    for file in {*written, *(file for page in written for file in linked(page))}:
        place = folder / file.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
    for path, page in MADE.items():
        (folder / path).write_text(page())


def main() -> int:
    """The command."""
    os.environ["COLUMNS"] = "100"  # of the helps
    lay_out(SITE / "pages")
    config = shutil.copy(CONFIG, SITE)
    # Material tells with each build that it is kept until May 2027; Zensical builds it as well.
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    build = [str(MKDOCS), "build", "--quiet", "--strict", "--config-file", str(config)]
    done = subprocess.run(build, env=env, check=False).returncode
    if done == 0:
        sys.stdout.write(f"{SITE / 'html' / 'index.html'}\n")
    return done


if __name__ == "__main__":
    sys.exit(main())
