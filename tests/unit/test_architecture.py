"""`docs/architecture.md` says what there is: rooms in the order of their layers, paths, sizes."""

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "spark" / "shardaudit"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
MODULES = [file for file in PACKAGE.rglob("*.py") if file.name != "__init__.py"]
MOST_FILES = 20
# Each command has them, and `main` asks for them; a logger is a module's own.
PROTOCOL = {"EXAMPLES", "add_arguments", "run", "main", "log"}


def rooms_of_the_page() -> list[str]:
    table = PAGE.partition("| room |")[2].partition("\n\n")[0]
    return re.findall(r"(?m)^\| `(\w+)` \|", table)


def layers() -> list[list[str]]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    [found] = [one["layers"] for one in contracts["contracts"] if one["type"] == "layers"]
    return [layer.split(" | ") for layer in found]


def test_the_page_names_every_room_from_the_top_to_the_bottom() -> None:
    packages = {file.parent.name for file in PACKAGE.glob("*/__init__.py")}
    ordered = rooms_of_the_page()
    assert set(ordered) == packages
    height = {room: number for number, layer in enumerate(layers()) for room in layer}
    assert ordered == sorted(ordered, key=height.__getitem__)


def test_each_question_is_answered_by_a_file_that_there_is() -> None:
    table = PAGE.partition("| question |")[2]
    answers = re.findall(r"(?m)\? \| (.+) \|$", table)
    files = [re.findall(r"`([\w/]+\.py)`", answer) for answer in answers]
    assert len(files) == 15
    assert all(files)
    assert [path for found in files for path in found if not (PACKAGE / path).is_file()] == []


def test_a_folder_can_be_looked_over() -> None:
    folders = Counter(file.parent for file in PACKAGE.rglob("*.py"))
    assert {str(folder): n for folder, n in folders.items() if n > MOST_FILES} == {}


def public_names(file: Path) -> set[str]:
    """What a module defines at its top, but what begins with an underscore."""
    found: set[str] = set()
    for node in ast.parse(file.read_text()).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Assign(targets=targets):
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
    return {name for name in found if not name.startswith("_")} - PROTOCOL


def test_a_public_name_is_defined_once() -> None:
    times = Counter(name for file in MODULES for name in public_names(file))
    assert {name for name, n in times.items() if n > 1} == set()


def test_a_file_name_is_given_once() -> None:
    stems = Counter(file.stem for file in MODULES if file.parent.name != "rules")
    assert {stem for stem, n in stems.items() if n > 1 and stem != "job"} == set()
