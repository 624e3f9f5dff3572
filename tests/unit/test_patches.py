"""What tests replace in our code while it runs: few things, each of them in a list with its reason.

Whatever else a test wants otherwise is an argument, the environment, a file or a stand-in.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
OURS = ("shardaudit", "tools")
# An error in the middle of the work that no input brings.
DEATHS = {
    "grpc._common.deserialize",
    "shardaudit.adapters.lake.delta_rs.DeltaTable",
    "shardaudit.audit.job.broken_rules",
    "shardaudit.audit.job.publish",
    "shardaudit.audit.window_ledger.shard_facts",
    "shardaudit.producer.packed_lines.PackedLines.content",
}
# Sizes and times that no test reaches, deep below what it calls.
SIZES = {
    "*.MOST_NAMED",  # of several modules
    "shardaudit.adapters.lake.delta_rs.DeltaRs.few",
    "shardaudit.audit.window_ledger.MOST_NAMED",
    "shardaudit.backfill.dedupe_plan.AN_AUDIT",
    "shardaudit.cli.migrate_command.AN_AUDIT",
    "shardaudit.cli.session.AN_AUDIT",
    "shardaudit.ingest.trace_writing.MOST_REPEATED",
    "shardaudit.store.lock.DEAD_AFTER",
    "shardaudit.store.lock.RENEW_SECONDS",
    "shardaudit.store.maintain.BESIDE",
    "shardaudit.store.warehouse.FEW_ROWS",
}
# Broken on purpose: what is tested is that the audit notices.
MISTAKES = {
    "*.function",  # each of those that the canary watches
    "shardaudit.audit.looked_into.unexplained",
    "shardaudit.audit.rules.classify._not_landed",
}
# The short way is closed, as the long one must say the same; or the long one must not be gone.
WAYS = {
    "shardaudit.adapters.quality._ROW_BY_ROW",
    "shardaudit.audit.evidence.Near.unsent",
    "shardaudit.audit.kept_days._known_days",
}


def patched(code: str) -> Iterator[str]:
    """What is patched that is ours, or private, or that nobody knows before it runs."""
    tree = ast.parse(code)
    others = dict(_names(tree))
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr not in {"setattr", "patch", "object"} or not node.args:
            continue
        if (target := _target(node.args, others)) is not None:
            yield target


def _names(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """What a name of a module means: of an import its whole name, of a class of its own itself."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(source), names=names):
                yield from ((n.asname or n.name, f"{source}.{n.name}") for n in names)
            case ast.Import(names=names):
                yield from ((n.asname or n.name.partition(".")[0], n.name) for n in names)
            case ast.ClassDef(name=name):
                yield name, f"tests.{name}"


def _target(arguments: list[ast.expr], names: dict[str, str]) -> str | None:
    match arguments:
        case [ast.Constant(value=str(whole)), *_]:
            pass
        case [place, ast.Constant(value=str(name)), *_]:
            root = ast.unparse(place).partition(".")[0]
            whole = f"{names.get(root, '*')}{ast.unparse(place).removeprefix(root)}.{name}"
        case [_, name, *_]:
            whole = f"*.{ast.unparse(name)}"
        case _:
            return None
    root, *parts = whole.split(".")
    is_private = any(part[0] == "_" and part[:2] != "__" for part in parts)
    is_told = root in (*OURS, "*") or (is_private and root != "tests")
    return whole if is_told else None


def test_our_own_names_are_patched_where_nothing_else_would_do() -> None:
    """Their lists may grow shorter only. `mutants` changes our code as its work."""
    files = [file for file in TESTS.rglob("*.py") if "mutants" not in file.parts]
    found = {name for file in files for name in patched(file.read_text())}
    assert found == DEATHS | SIZES | MISTAKES | WAYS


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("patch.setattr('shardaudit.a.b', 1)", ["shardaudit.a.b"]),
        ("from shardaudit.a import b\npatch.setattr(b, 'c', 1)", ["shardaudit.a.b.c"]),
        ("from shardaudit.a import b as x\npatch.setattr(x.y, 'c', 1)", ["shardaudit.a.b.y.c"]),
        ("from tools import b\nmock.patch.object(b, 'c')", ["tools.b.c"]),
        ("import os\npatch.setattr(os, '_exit', 1)", ["os._exit"]),
        ("patch.setattr(module, 'X', 1)", ["*.X"]),
        ("patch.setattr(module, name, 1)", ["*.name"]),
        ("import time\npatch.setattr(time, 'sleep', 1)", []),
        ("import a.b\npatch.setattr(a.b.C, '__init__', 1)", []),
        ("patch.setattr('time.sleep', 1)", []),
        ("from tests.a import Web\npatch.setattr(Web, 'got', [])", []),
        ("class Web: ...\npatch.setattr(Web, 'got', [])", []),
        ("patch.setenv('X', '1')", []),
    ],
)
def test_a_patch_is_seen_however_it_is_written(code: str, found: list[str]) -> None:
    assert list(patched(code)) == found
