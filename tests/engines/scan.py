"""The check: a module's syntax tree against the list. It sees names, not types.

What it cannot see (which type is cast, whether a field may be NULL) is for the tables of our own
rules, for the audits on both engines, and for the canary of each audit.
"""

import ast
import re
from collections.abc import Callable, Iterator

from pyspark.sql import (
    Column,
    DataFrame,
    DataFrameReader,
    DataFrameWriter,
    GroupedData,
    Row,
    SparkSession,
    Window,
    WindowSpec,
)

from tests.engines.subset import (
    CASTERS,
    CASTS,
    CHOOSERS,
    CLASSES,
    DOUBLES,
    FILES,
    FUNCTIONS,
    INPUTS,
    JOINS,
    METHODS,
    OPTIONS,
    PLACES,
)

_CLASSES = (Column, DataFrame, DataFrameReader, DataFrameWriter, GroupedData, Row, SparkSession,
            Window, WindowSpec)  # fmt: skip
_NAMES = {(kind, name) for kind in _CLASSES for name in dir(kind) if not name.startswith("_")}
PROPERTIES = {name for kind, name in _NAMES if not callable(getattr(kind, name))}
METHODS_OF_PYSPARK = {name for _, name in _NAMES} - PROPERTIES
# Also names of PySpark's, but in the pipeline those of our own or of Python's.
OTHERS = {
    "filter": "of Arrow's tables",
    "index": "of lists",
    "items": "of mappings",
    "name": "of enums and tables",
    "replace": "of texts, and Warehouse.replace",
    "sort": "of lists",
    "stop": "of servers",
    "streams": "of settings",
    "version": "of sinks",
}
JVM = {"_jvm", "_jdf", "_jsc", "_jsparkSession", "_sc", "rdd", "sparkContext"}
_OTHER_MEANINGS = re.compile(r"\\[dDwWsSbB1-9]|\(\?<?[=!]|\(\?\w*i")
_ESCAPES_AND_CLASSES = re.compile(r"\\.|\[[^\]]*\]")

Place = tuple[int, str]


def refused(source: str, *, module: str) -> list[str]:
    """`line: what is wrong` for everything in a module that is outside of the list."""
    tree = ast.parse(source)
    places = [*_engine_matters(tree, module)]
    if "pyspark" in source:
        for rule in _CHECKS:
            places += rule(tree, module)
    return [f"{line}: {said}" for line, said in sorted(set(places))]


def _engine_matters(tree: ast.AST, module: str) -> Iterator[Place]:
    """What belongs to one engine alone, in any module."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) if name in JVM:
                yield node.lineno, f"{name} belongs to the JVM"
            case ast.ImportFrom(module=str(source)) if re.match(r"delta(\.|$)", source):
                yield node.lineno, f"{source} belongs to Apache Spark"
            case ast.Compare() if not module.startswith(CHOOSERS) and _asks_engine(node):
                yield node.lineno, "which engine runs is for the door to ask"


def _asks_engine(node: ast.Compare) -> bool:
    sides = [ast.unparse(side) for side in (node.left, *node.comparators)]
    names_one = any(re.fullmatch(r"EngineName\.\w+|'embedded'", side) for side in sides)
    is_one = any(re.fullmatch(r"(.*\.)?engine", side) for side in sides)
    return names_one or (is_one and any(side.startswith(("'", "(", "[", "{")) for side in sides))


def _imports(tree: ast.AST, _: str) -> Iterator[Place]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, a.name) for a in names if a.name.startswith("pyspark"))
            case ast.ImportFrom(module=str(source), names=names) if source.startswith("pyspark"):
                for alias in names:
                    if alias.name not in CLASSES.get(source, []):
                        yield node.lineno, f"{source}.{alias.name}"
                    elif (alias.asname or alias.name) not in {alias.name, "F"}:
                        yield node.lineno, f"{alias.name} under another name"


def _functions(tree: ast.AST, _: str) -> Iterator[Place]:
    named = {id(n.value): n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "F":
            name = named.get(id(node), "by itself")
            if name not in FUNCTIONS:
                yield node.lineno, f"F.{name}"


def _methods(tree: ast.AST, module: str) -> Iterator[Place]:
    foreign = _foreign_names(tree)
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or _root(node) in foreign:
            continue
        name, is_called = node.attr, id(node) in called
        is_pyspark = name in METHODS_OF_PYSPARK if is_called else name in PROPERTIES
        # `warehouse.read(table)` is ours, of `spark.read.load(path)` the `load` tells.
        if is_pyspark and name not in {*METHODS, *FILES, *OTHERS, *PLACES}:
            yield node.lineno, f".{name}"
        elif is_pyspark and name in PLACES and not module.startswith(PLACES[name]):
            yield node.lineno, f".{name} outside of {', '.join(PLACES[name])}"
        elif name == "astimezone":
            yield node.lineno, ".astimezone of a row's time: take it from `collected`"


def _foreign_names(tree: ast.AST) -> set[str]:
    """What is imported from elsewhere than PySpark, and texts."""
    names = {"a text", "F"}
    for node in ast.walk(tree):
        source = node.module if isinstance(node, ast.ImportFrom) else None
        if isinstance(node, ast.Import | ast.ImportFrom) and not str(source).startswith("pyspark"):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def _root(node: ast.expr) -> str:
    """The name that a chain of attributes, calls and keys begins with."""
    match node:
        case ast.Attribute(value=ast.Name(id="F")):
            return "F"
        case ast.Call(func=ast.Attribute(value=ast.Name(id="F"))):
            return "a column"
        case ast.Attribute(value=inner) | ast.Call(func=inner) | ast.Subscript(value=inner):
            return _root(inner)
        case ast.Name(id=name):
            return name
        case ast.Constant(value=str()) | ast.JoinedStr():
            return "a text"
    return ""


def _arguments(tree: ast.AST, module: str) -> Iterator[Place]:
    foreign = _foreign_names(tree) - {"F"}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=name)) if _root(node.func) not in foreign:
                said = _RULES.get(name, _anything)(node, module)
                if said is not None:
                    yield node.lineno, said


def _anything(_call: ast.Call, _module: str) -> None:
    return None


def _cast(call: ast.Call, module: str) -> str | None:
    kind = _text(call.args[0])
    is_known = module in CASTERS if kind is None else re.split(r"[<(]", kind)[0] in CASTS
    return None if is_known else f"cast:{kind}"


def _join(call: ast.Call, _: str) -> str | None:
    how = {keyword.arg: _text(keyword.value) for keyword in call.keywords}.get("how")
    is_of_frames = len(call.args) > 1 or how is not None
    return f"join:{how}" if is_of_frames and how not in JOINS else None


def _condition(call: ast.Call, _: str) -> str | None:
    text = None if _root(call.func) == "F" else _text(call.args[0])
    return None if text is None else f"SQL in a text: {text}"


def _grouping(call: ast.Call, _: str) -> str | None:
    return "agg of a dictionary" if any(isinstance(a, ast.Dict) for a in call.args) else None


def _union(call: ast.Call, _: str) -> str | None:
    if "allowMissingColumns" in {keyword.arg for keyword in call.keywords}:
        return "unionByName(allowMissingColumns): name them, with their types"
    return None


def _option(call: ast.Call, _: str) -> str | None:
    assert isinstance(call.func, ast.Attribute)
    value = _text(call.args[0]) if call.args else None
    name = call.func.attr
    return None if value in OPTIONS[name] else f"{name}({value})"


_RULES: dict[str, Callable[[ast.Call, str], str | None]] = {
    "cast": _cast,
    "try_cast": _cast,
    "join": _join,
    "where": _condition,
    "filter": _condition,
    "agg": _grouping,
    "unionByName": _union,
    "format": _option,
    "mode": _option,
    "option": _option,
}


def _text(node: ast.expr) -> str | None:
    if isinstance(node, ast.JoinedStr):
        return ast.unparse(node)
    return str(node.value) if isinstance(node, ast.Constant) else None


def _patterns(tree: ast.AST, _: str) -> Iterator[Place]:
    """Regular expressions, also where they are constants of the module."""
    constants = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            place = {"rlike": 0, "regexp_replace": 1}.get(node.func.attr)
            for text in _parts(node.args[place], constants) if place is not None else ():
                if _means_different_things(text):
                    yield node.lineno, f"pattern {text!r}"


def _parts(node: ast.expr, constants: dict[str, ast.expr]) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.BinOp(left=left, right=right):
            yield from _parts(left, constants)
            yield from _parts(right, constants)
        case ast.Name(id=name) if name in constants:
            yield from _parts(constants[name], constants)


def _means_different_things(pattern: str) -> bool:
    bare = _ESCAPES_AND_CLASSES.sub("", pattern)
    has_dot = "." in bare and "(?s)" not in bare
    return has_dot or "$" in bare or _OTHER_MEANINGS.search(pattern) is not None


def _doubles(tree: ast.AST, module: str) -> Iterator[Place]:
    """Columns of our tables that the engine must not read."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and not module.startswith(INPUTS):
            named = {_text(arg) for arg in node.args} & set(DOUBLES)
            yield from ((node.lineno, f"{name}: doubles are read by delta-rs") for name in named)


def _powers(tree: ast.AST, _: str) -> Iterator[Place]:
    """Python's own `**` of numbers is fine, that of columns differs in the last digit."""
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(left=ast.Constant(), op=ast.Pow(), right=ast.Constant()):
                continue
            case ast.BinOp(op=ast.Pow()):
                yield node.lineno, "op:**"


def _lists(tree: ast.AST, _: str) -> Iterator[Place]:
    """None of a list that may be empty: of NULL that is true, or NULL, as the engine will."""
    for node in ast.walk(tree):
        match node:
            case ast.UnaryOp(
                op=ast.Invert(), operand=ast.Call(func=ast.Attribute(attr="isin"), args=args)
            ) if not (args and all(_is_constant(arg) for arg in args)):
                yield node.lineno, "~isin of a list that may be empty: `~any_of` of comparisons"


def _is_constant(argument: ast.expr) -> bool:
    """A value, or a constant's values."""
    match argument:
        case ast.Starred(value=ast.Name(id=name)):
            return name.isupper()
    return isinstance(argument, ast.Constant)


_CHECKS = (_imports, _functions, _methods, _arguments, _patterns, _powers, _doubles, _lists)
