"""The faults: each a small change of one function's syntax tree.

Only bodies of functions are changed: a mutant takes the place of the original by its code object,
so that whoever imported the function gets it, and nothing has to be loaded again. mutmut and
cosmic-ray start a process per mutant; here starting the engine would cost more than the tests.
"""

import ast
import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "spark"

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}
_SIDES = {
    "traces": "sink",
    "counted": "landed",
    "sent": "landed",
    "sent_n": "landed_n",
    "sent_key": "landed_key",
    "sent_count": "landed_count",
    "sent_shards": "landed_shards",
    "sent_sequences": "landed_sequences",
    "sent_at": "landed_at",
    "matched": "missing",
    "first_landed_at": "last_landed_at",
}
_OTHER_SIDE = _SIDES | {there: here for here, there in _SIDES.items()}
_JOINS = {
    "left": "inner",
    "inner": "left",
    "full_outer": "left",
    "left_semi": "left_anti",
    "left_anti": "left_semi",
}
_EXTREMES = {"min": "max", "max": "min", "least": "greatest", "greatest": "least"}
_KEYS = {"CELL", "KEY", "ID"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault in a function. `number`: which of the places in the function's tree it changes."""

    path: str
    function: str
    line: int
    number: int
    what: str

    @property
    def name(self) -> str:
        """The same as long as the function is."""
        return f"{self.path}:{self.function}:{self.number}"

    @property
    def module(self) -> str:
        """The dotted name of its module."""
        return self.path.removesuffix(".py").replace("/", ".")


def mutants(paths: list[str], *, seed: str) -> list[Mutant]:
    """All mutants of the modules, in an order that is random, and the same for the same seed."""
    found = [mutant for path in paths for mutant in _of_module(path)]
    return sorted(
        found, key=lambda mutant: hashlib.sha256(f"{seed}{mutant.name}".encode()).hexdigest()
    )


def mutated(mutant: Mutant) -> ast.Module:
    """The module's tree with the fault in it."""
    tree = _tree(mutant.path)
    function = dict(_functions(tree, ""))[mutant.function]
    places = [change for node in _nodes(function) for change in _changes(node)]
    places[mutant.number].apply()
    return ast.fix_missing_locations(tree)


def _of_module(path: str) -> Iterator[Mutant]:
    for name, function in _functions(_tree(path), ""):
        number = 0
        for node in _nodes(function):
            for change in _changes(node):
                line = getattr(node, "lineno", function.lineno)
                yield Mutant(path, name, line, number, change.what)
                number += 1


def _tree(path: str) -> ast.Module:
    return ast.parse((PACKAGE / path).read_text(encoding="utf-8"))


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield f"{prefix}{child.name}", child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")


def _nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """What the function does, in the order of the text; not its docstring."""
    first = 1 if ast.get_docstring(function) is not None else 0
    for statement in function.body[first:]:
        yield from _walk(statement)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_left_out(field, child):
                yield from _walk(child)


def _is_left_out(field: str, node: ast.AST) -> bool:
    """Types, texts for people, and `strict=True`, which repeats what the lengths say already."""
    if field in {"annotation", "returns"}:
        return True
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return True
    return isinstance(node, ast.JoinedStr | ast.Raise)


@dataclass(frozen=True, slots=True)
class _Change:
    """Puts `new` where `node` stands, in place: the tree keeps its shape around it."""

    what: str
    node: ast.AST
    new: ast.AST

    def apply(self) -> None:
        new = copy.deepcopy(self.new)
        self.node.__class__ = type(new)
        self.node.__dict__.clear()
        self.node.__dict__.update(new.__dict__)


def _changes(node: ast.AST) -> Iterator[_Change]:
    match node:
        case ast.Compare(ops=[op]) if type(op) in _COMPARISONS:
            other = _COMPARISONS[type(op)]
            new = ast.Compare(node.left, [other()], node.comparators)
            yield _Change(f"{type(op).__name__} → {other.__name__}", node, new)
        case ast.BinOp(op=op) if type(op) in _OPERATORS:
            to = _OPERATORS[type(op)]
            changed = ast.BinOp(node.left, to(), node.right)
            yield _Change(f"{type(op).__name__} → {to.__name__}", node, changed)
        case ast.BoolOp(op=op, values=values):
            turned = ast.Or() if isinstance(op, ast.And) else ast.And()
            what = f"{type(op).__name__} → {type(turned).__name__}"
            yield _Change(what, node, ast.BoolOp(turned, values))
        case ast.UnaryOp(op=ast.Invert() | ast.Not(), operand=operand):
            yield _Change("not dropped", node, operand)
        case ast.Constant(value=value):
            yield from _constants(node, value)
        case ast.Call():
            yield from _calls(node)


def _constants(node: ast.Constant, value: object) -> Iterator[_Change]:
    if isinstance(value, bool):
        yield _Change(f"{value} → {not value}", node, ast.Constant(not value))
    elif isinstance(value, int):
        yield _Change(f"{value} → {value + 1}", node, ast.Constant(value + 1))
    elif isinstance(value, str) and value in _OTHER_SIDE:
        other = _OTHER_SIDE[value]
        yield _Change(f"{value} → {other}", node, ast.Constant(other))


def _calls(node: ast.Call) -> Iterator[_Change]:
    match node.func:
        case ast.Attribute(value=ast.Name(id="F"), attr=name) if name in _EXTREMES:
            yield _Change(f"F.{name} → F.{_EXTREMES[name]}", node.func, _attr("F", _EXTREMES[name]))
        case ast.Name(id=name) if name in {"min", "max"}:
            yield _Change(f"{name} → {_EXTREMES[name]}", node.func, _name(_EXTREMES[name]))
        case ast.Attribute(value=before, attr="when") if not _is_functions(before):
            yield _Change("a later `when` dropped", node, before)
            if _is_when(before):
                first = ast.Call(_attr("F", "when"), node.args, node.keywords)
                yield _Change("the first `when` dropped", node, first)
        case ast.Attribute(value=before, attr="where" | "filter" as name) if not _is_functions(
            before
        ):
            yield _Change(f"`{name}` dropped", node, before)
        case ast.Attribute(value=before, attr="distinct" | "fillna" as name):
            yield _Change(f"`{name}` dropped", node, before)
        case ast.Attribute(attr="join"):
            yield from _joins(node)


def _joins(node: ast.Call) -> Iterator[_Change]:
    for keyword in node.keywords:
        how = keyword.value
        if keyword.arg == "how" and isinstance(how, ast.Constant) and how.value in _JOINS:
            other = _JOINS[str(how.value)]
            yield _Change(f"{how.value} join → {other}", how, ast.Constant(other))
    for keys in node.args[1:2]:
        if isinstance(keys, ast.List) and len(keys.elts) > 1:
            for i, key in enumerate(keys.elts):
                rest = [other for j, other in enumerate(keys.elts) if j != i]
                yield _Change(f"join key {ast.unparse(key)} removed", keys, _list(rest))
        elif isinstance(keys, ast.Name) and keys.id in _KEYS:
            for i in (0, 1):
                one = _list([ast.Subscript(_name(keys.id), ast.Constant(i), ast.Load())])
                yield _Change(f"join by {keys.id}[{i}] alone", keys, one)


def _is_functions(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "F"


def _is_when(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="F"), attr="when")):
            return True
    return False


def _attr(name: str, attr: str) -> ast.Attribute:
    return ast.Attribute(_name(name), attr, ast.Load())


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _list(values: list[ast.expr]) -> ast.List:
    return ast.List(values, ast.Load())
