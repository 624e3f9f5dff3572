"""`docs/architecture.md` says what there is: rooms in the order of their layers, paths, sizes."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "spark" / "shardaudit"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
MODULES = [file for file in PACKAGE.rglob("*.py") if file.name != "__init__.py"]
TOOLS = sorted((ROOT / "tools").rglob("*.py"))
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
    rooms = {file.relative_to(PACKAGE).parts[0] for file in PACKAGE.glob("*/**/*.py")}
    ordered = rooms_of_the_page()
    assert set(ordered) == rooms
    height = {room: number for number, layer in enumerate(layers()) for room in layer}
    assert ordered == sorted(ordered, key=height.__getitem__)


def test_each_question_is_answered_by_a_file_that_there_is() -> None:
    table = PAGE.partition("| question |")[2]
    answers = re.findall(r"(?m)\? \| (.+) \|$", table)
    files = [re.findall(r"`([\w/]+\.py)`", answer) for answer in answers]
    assert len(files) == 15
    assert all(files)
    assert [path for found in files for path in found if not (PACKAGE / path).is_file()] == []


def test_each_folder_with_code_is_a_package() -> None:
    """Without it the import contracts do not see what is in there."""
    folders = {file.parent for file in PACKAGE.rglob("*.py")}
    assert {str(one) for one in folders if not (one / "__init__.py").is_file()} == set()


def test_dags_holds_one_file_for_each_dag_and_nothing_else() -> None:
    definitions = [file for file in MODULES if file.parent.name == "dag_definitions"]
    found = [one for one in (ROOT / "dags").iterdir() if one.name != "__pycache__"]
    assert len(found) == len(definitions) == 5
    assert {one.suffix for one in found} == {".py"}


def test_a_folder_can_be_looked_over() -> None:
    folders = Counter(file.parent for file in PACKAGE.rglob("*.py"))
    assert {str(folder): n for folder, n in folders.items() if n > MOST_FILES} == {}


def defined(code: str) -> Iterator[str]:
    """The functions and classes at a module's top."""
    for node in ast.parse(code).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def assigned(code: str) -> Iterator[str]:
    """What is assigned at a module's top, several at once, too."""
    for node in ast.parse(code).body:
        match node:
            case ast.Assign(targets=targets):
                parts = [part for target in targets for part in ast.walk(target)]
            case ast.AnnAssign(target=target):
                parts = [target]
            case _:
                continue
        yield from (part.id for part in parts if isinstance(part, ast.Name))


def public_names(code: str) -> set[str]:
    """What a module defines at its top, but what begins with an underscore."""
    found = {*defined(code), *assigned(code)}
    return {name for name in found if not name.startswith("_")} - PROTOCOL


def test_a_public_name_is_defined_once() -> None:
    """Of the tools functions and classes alone: each is a program with constants of its own."""
    names = [name for file in MODULES for name in public_names(file.read_text())]
    names += [name for file in TOOLS for name in set(defined(file.read_text())) - PROTOCOL]
    times = Counter(name for name in names if not name.startswith("_"))
    assert {name for name, n in times.items() if n > 1} == set()


@pytest.mark.parametrize(
    "code",
    [
        "def found(): ...",
        "async def found(): ...",
        "class found: ...",
        "found = 1",
        "found: int = 1",
        "other, found = 1, 2",
        "[_, (*found, _)] = 1, (2, 3)",
    ],
)
def test_a_name_is_seen_however_it_is_defined(code: str) -> None:
    assert "found" in public_names(code)


def test_a_file_name_is_given_once() -> None:
    stems = Counter(file.stem for file in MODULES if file.parent.name != "rules")
    assert {stem for stem, n in stems.items() if n > 1 and stem != "job"} == set()


@cache
def imports(file: Path) -> frozenset[Path]:
    """Our modules that a module imports when it is loaded."""
    names: set[str] = set()
    for node in ast.parse(file.read_text()).body:
        match node:
            case ast.ImportFrom(module=str(source), names=parts):
                names |= {source, *(f"{source}.{part.name}" for part in parts)}
            case ast.Import(names=parts):
                names |= {part.name for part in parts}
    files = {(PACKAGE.parent / name.replace(".", "/")).with_suffix(".py") for name in names}
    return frozenset(files & set(MODULES))


@cache
def chain(file: Path, *, without: str = "") -> int:
    """The modules on the longest way down from one, itself included, past those of a room."""
    below = (one for one in imports(file) if one.relative_to(PACKAGE).parts[0] != without)
    return 1 + max((chain(one, without=without) for one in below), default=0)


def test_the_page_says_how_many_modules_there_are_and_how_long_the_way_is() -> None:
    """The numbers of modules and lines, about; of the way through the imports, at most."""
    said = re.search(
        r"about (\d+) modules of about (\d+) lines.*?(\d+) modules long, (\d+) without the room",
        " ".join(PAGE.split()),
    )
    assert said is not None
    count, mean, longest, without_audit = map(int, said.groups())
    lines = sum(len(file.read_text().splitlines()) for file in MODULES)
    assert len(MODULES) == pytest.approx(count, rel=0.05)
    assert lines / len(MODULES) == pytest.approx(mean, rel=0.05)
    others = [file for file in MODULES if file.relative_to(PACKAGE).parts[0] != "audit"]
    assert max(map(chain, MODULES)) <= longest
    assert max(chain(file, without="audit") for file in others) <= without_audit
