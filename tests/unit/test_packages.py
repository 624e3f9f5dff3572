"""What each of `pip install shardaudit[…]` brings is enough for what it is for."""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "spark" / "shardaudit"
# What needs more than the extra `spark`.
OF_AIRFLOW = ("airflow", "page")


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's files in a folder: an installation without any dependency."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


def bare(installed: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a Python that has the standard library and the wheel."""
    path = f"import sys; sys.path.insert(0, {str(installed)!r}); "
    call = [sys.executable, "-I", "-S", "-c", path + code]
    return subprocess.run(call, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("room", "name"), [("producer", "traced"), ("consumer", "trace")])
def test_emitter_is_imported_when_nothing_else_is_installed(
    installed: Path, room: str, name: str
) -> None:
    ran = bare(installed, f"from shardaudit.{room} import {name}; print({name}.__name__)")
    assert (ran.stdout, ran.stderr) == (f"{name}\n", "")


def test_payload_is_read_when_nothing_else_is_installed(installed: Path) -> None:
    code = "from shardaudit.producer.payload_keys import PayloadKeys as P; "
    ran = bare(installed, code + """print(P(['a']).held(b'{"b": 1, "a": 2}')[0])""")
    assert (ran.stdout, ran.stderr) == ("2\n", "")


def test_log_is_gzip_when_nothing_else_is_installed(installed: Path) -> None:
    code = "import gzip; from shardaudit.producer import packed_lines as p; "
    made = "p.PackedLines(p.Teller('p', 's', 'producer', 1.0))"
    ran = bare(installed, code + f"print(p.ENDING, gzip.decompress({made}.content()))")
    assert (ran.stdout, ran.stderr) == (".jsonl.gz b''\n", "")


def test_commands_say_what_to_install_when_they_are_not(installed: Path) -> None:
    code = "import runpy; runpy.run_module('shardaudit', run_name='__main__')"
    ran = bare(installed, code)
    assert ran.returncode == 1
    assert "pip install 'shardaudit[spark]'" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_extra_spark_brings_all_that_the_commands_import() -> None:
    imported = {
        name
        for file in PACKAGE.rglob("*.py")
        if file.relative_to(PACKAGE).parts[0] not in OF_AIRFLOW
        for name in imports(file)
    }
    of, brought = packages_distributions(), with_their_own(extras()["spark"])
    lacking = {n for n in imported if n in of and brought.isdisjoint(map(plain, of[n]))}
    assert lacking - {"shardaudit"} == set()


def test_extra_spark_brings_what_spark_connect_needs() -> None:
    asked = project()["optional-dependencies"]["spark"]
    assert [wanted for wanted in asked if wanted.startswith("pyspark[connect]==")]


def imports(file: Path) -> set[str]:
    """The top packages that a file imports, but for types."""
    names, left = set(), list[ast.AST](ast.parse(file.read_text()).body)
    while left:
        node = left.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        left += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


def with_their_own(packages: set[str]) -> set[str]:
    """The packages and those that they bring, whatever extras of theirs are asked for."""
    found, left = set[str](), list(packages)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += [plain(required(wanted)) for wanted in needs(name) if "extra ==" not in wanted]
    return found


def needs(package: str) -> list[str]:
    """What an installed package asks for; nothing where it is not for this machine."""
    try:
        return requires(package) or []
    except PackageNotFoundError:
        return []


def required(wanted: str) -> str:
    """The name in a requirement."""
    return re.split(r"[\[=<>~! ;(]", wanted, maxsplit=1)[0]


def extras() -> dict[str, set[str]]:
    """The names of the packages of each extra."""
    asked = project()["optional-dependencies"]
    return {extra: {plain(required(w)) for w in wanted} for extra, wanted in asked.items()}


def project() -> dict[str, Any]:
    """The table [project] of pyproject.toml."""
    read: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return read


def plain(name: str) -> str:
    """A distribution's name as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
