"""What linters and import contracts cannot show: a scan of the sources' syntax trees.

Each test lists every place that breaks its rule; the rule says why it is there.
"""

import ast
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "spark" / "shardaudit"
RULES = sorted(PACKAGE.glob("**/rules"))
MODULE_CEILING = 350
FUNCTION_CEILING = 40
MOST_ASSERTS = 8
VAGUE_MODULES = {"utils", "common", "helpers", "misc"}

ACTIONS = {"collect", "toPandas", "show", "toLocalIterator", "foreach", "foreachPartition", "take"}
ACTIONS_WITHOUT_ARGUMENTS = {"count", "first", "head", "isEmpty"}
CLOCK_CALLS = re.compile(
    r"(datetime|date)\.(now|utcnow|today)|time\.time(_ns)?"
    r"|F\.(now|current_timestamp|current_date|localtimestamp)"
)
CLOCK_SQL = re.compile(r"(?i)\b(current_timestamp|current_date|localtimestamp|now\(\))")


def sources(*folders: Path) -> list[Path]:
    return [file for folder in folders for file in sorted(folder.rglob("*.py"))]


def places(files: Iterable[Path], breaks: Callable[[ast.AST], bool]) -> list[str]:
    """Where a person can jump to, of each node that breaks a rule."""
    return [place(file, node) for file in files for node in nodes(file) if breaks(node)]


def place(file: Path, node: ast.AST) -> str:
    return f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"


@cache
def nodes(file: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(file.read_text())))


def is_action(node: ast.AST) -> bool:
    """A call that makes Spark work, or a way to a writer."""
    if isinstance(node, ast.Attribute) and node.attr in {"write", "writeTo", "writeStream"}:
        return True
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    alone = not node.args and not node.keywords
    return node.func.attr in ACTIONS or (node.func.attr in ACTIONS_WITHOUT_ARGUMENTS and alone)


def reads_clock(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return CLOCK_CALLS.fullmatch(ast.unparse(node.func)) is not None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return CLOCK_SQL.search(node.value) is not None
    return False


def is_called_df(node: ast.AST) -> bool:
    if not isinstance(node, ast.Name | ast.arg):
        return False
    name = node.id if isinstance(node, ast.Name) else node.arg
    return re.fullmatch(r"_?df\d*", name) is not None


def is_code(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign)


def imports_a_test(node: ast.AST) -> bool:
    pattern = r"(^|\.)test_\w+$"
    return isinstance(node, ast.ImportFrom) and bool(re.search(pattern, node.module or ""))


def logic_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function without its docstring."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None:
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def test_each_feature_with_rules_is_scanned() -> None:
    rooms = {folder.parent.name for folder in RULES}
    assert rooms >= {"ingest", "audit", "watch", "backfill"}


def test_rooms_describe_and_do_not_act() -> None:
    assert places(sources(*RULES), is_action) == []


def imported(node: ast.AST) -> list[str]:
    """What of ours an import statement names, a module or what is in one."""
    match node:
        case ast.Import(names=names):
            found = [a.name for a in names]
        case ast.ImportFrom(module=str(source), names=names):
            found = [f"{source}.{a.name}" for a in names]
        case _:
            return []
    return [name for name in found if name.startswith("shardaudit.")]


def is_for_rules(name: str) -> bool:
    """Whether rules may import it: model, columns, and other rules."""
    return re.match(r"shardaudit\.(model|columns|\w+\.rules)\.", name) is not None


def test_rules_know_model_columns_and_rules_alone() -> None:
    found = [
        f"{place(file, node)} {name}"
        for file in sources(*RULES)
        for node in nodes(file)
        for name in imported(node)
        if not is_for_rules(name)
    ]
    assert found == []


def test_only_the_clock_adapter_reads_a_clock() -> None:
    files = set(sources(PACKAGE, ROOT / "dags")) - {PACKAGE / "adapters" / "clock.py"}
    assert places(sorted(files), reads_clock) == []


def test_frames_are_named_after_their_rows() -> None:
    assert places(sources(PACKAGE, ROOT / "dags", ROOT / "tests"), is_called_df) == []


def test_modules_answer_one_question() -> None:
    lines = {
        str(file.relative_to(ROOT)): len(file.read_text().splitlines())
        for file in sources(PACKAGE, ROOT / "dags", ROOT / "tools")
    }
    assert {name: count for name, count in lines.items() if count > MODULE_CEILING} == {}


def test_functions_are_short() -> None:
    found = {
        f"{place(file, node)} {node.name}": logic_lines(node)
        for file in sources(PACKAGE, ROOT / "dags", ROOT / "tools")
        for node in nodes(file)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: count for name, count in found.items() if count > FUNCTION_CEILING} == {}


def test_no_module_is_a_drawer_for_anything() -> None:
    files = sources(PACKAGE, ROOT / "dags", ROOT / "tests")
    assert [str(file) for file in files if file.stem in VAGUE_MODULES] == []


def test_packages_hold_no_code() -> None:
    assert places(PACKAGE.rglob("__init__.py"), is_code) == []


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        (is_action, "traces.count()"),
        (is_action, "traces.write.save('x')"),
        (is_action, "rows = traces.limit(3).collect()"),
        (reads_clock, "at = datetime.now(UTC)"),
        (reads_clock, "rows.withColumn('at', F.current_timestamp())"),
        (reads_clock, "sql('select now() as at')"),
        (is_called_df, "df2 = traces"),
        (is_called_df, "def f(df): ..."),
    ],
)
def test_rule_can_fail(rule: object, line: str) -> None:
    assert callable(rule)
    assert any(rule(node) for node in ast.walk(ast.parse(line)))


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        (is_action, "F.count('*')"),
        (is_action, "'abc'.count('a')"),
        (reads_clock, "at = clock.now()"),
        (reads_clock, "time.sleep(1)"),
    ],
)
def test_rule_lets_pass_what_is_fine(rule: object, line: str) -> None:
    assert callable(rule)
    assert not any(rule(node) for node in ast.walk(ast.parse(line)))


def test_no_test_imports_a_test() -> None:
    """What two tests need has a place of its own; a test that goes takes nothing with it."""
    assert places(sources(ROOT / "tests"), imports_a_test) == []


def asserts(test: ast.AST) -> int:
    return sum(isinstance(node, ast.Assert) for node in ast.walk(test))


def written_tests(files: Iterable[Path]) -> dict[str, ast.AST]:
    """The functions that are tests, by where they stand."""
    return {
        f"{place(file, node)} {node.name}": node
        for file in files
        for node in nodes(file)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[:4] == "test"
    }


def test_a_test_with_much_to_say_is_split_or_made_a_table() -> None:
    counts = {name: asserts(test) for name, test in written_tests(sources(ROOT / "tests")).items()}
    assert {name: count for name, count in counts.items() if count > MOST_ASSERTS} == {}


def test_each_module_of_rules_has_a_table_of_its_own() -> None:
    tables = {file.stem for file in sources(ROOT / "tests")}
    rules = {file.stem for file in sources(*RULES)} - {"__init__"}
    assert {stem for stem in rules if f"test_{stem}" not in tables} == set()
