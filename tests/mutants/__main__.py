"""Runs the mutants and says what survived; what was run before is kept and not run again.

python -m tests.mutants --sample 100          # the first 100 of a fixed random order
python -m tests.mutants --only audit/rules/cells --parts check
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict

from tests.mutants.mutations import ROOT, Mutant, mutants
from tests.mutants.suites import SUITES, is_audited

RESULTS = ROOT / ".mutants" / "results.jsonl"
AT_ONCE = 25  # mutants in one process
_FIELDS = {"check": "check", "tests": "killed_by"}  # where the results of a part stand
GOOD = ("ok", "pending")  # verdicts that let a loss pass

Result = dict[str, object]


def main() -> None:
    """Runs what is asked for and was not run yet, then prints the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("--sample", type=int, help="as many of them, always the same")
    parser.add_argument("--seed", default="20261122", help="another order")
    parser.add_argument("--only", default="", help="a part of the module's path")
    parser.add_argument("--parts", nargs="+", default=["check", "tests"])
    parser.add_argument("--budget", type=float, help="seconds of tests for each, for a first look")
    asked = parser.parse_args()
    paths = [path for path in SUITES if asked.only in path]
    chosen = mutants(paths, seed=asked.seed)[: asked.sample]
    known = _known()
    for part in asked.parts:
        todo = [m for m in chosen if _is_open(m, part, known, asked.budget)]
        for first in range(0, len(todo), AT_ONCE):
            for name, found in _run(todo[first : first + AT_ONCE], part, asked.budget):
                known.setdefault(name, {}).update(found)
                _keep(name, found)
    sys.stdout.write(table(chosen, known))


def _is_open(mutant: Mutant, part: str, known: dict[str, Result], budget_s: float | None) -> bool:
    if part == "check" and not is_audited(mutant.path):
        return False
    if part == "tests" and budget_s and known.get(mutant.name, {}).get("tried_s"):
        return False
    return _FIELDS[part] not in known.get(mutant.name, {})


def _run(some: list[Mutant], part: str, budget_s: float | None) -> Iterator[tuple[str, Result]]:
    """The mutants in one process; who ends it is done, the others follow in another one."""
    listed = [asdict(mutant) for mutant in some]
    asked = json.dumps({"parts": [part], "mutants": listed, "budget_s": budget_s})
    words = [sys.executable, "-m", "tests.mutants.worker"]
    begun: list[str] = []
    done = 0
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as worker:
        if worker.stdin is None or worker.stdout is None:
            raise RuntimeError("no pipes")
        worker.stdin.write(asked)
        worker.stdin.close()
        for line in worker.stdout:
            found = json.loads(line)
            name = found.pop("name")
            if "begun" in found:
                begun.append(name)
            else:
                done += 1
                yield name, found
    if not begun:
        raise RuntimeError("the process ended before the first mutant")
    if len(begun) > done:
        yield begun[-1], {_FIELDS[part]: "error crash" if part == "check" else "crash"}
    if len(begun) < len(some):
        yield from _run(some[len(begun) :], part, budget_s)


def _known() -> dict[str, Result]:
    known: dict[str, Result] = {}
    if RESULTS.exists():
        for line in RESULTS.read_text(encoding="utf-8").splitlines():
            found = json.loads(line)
            known.setdefault(found.pop("name"), {}).update(found)
    return known


def _keep(name: str, found: Result) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"name": name, **found}) + "\n")


def table(chosen: list[Mutant], known: dict[str, Result]) -> str:
    """Markdown: per module what the tests killed and the self-check said, then what survived."""
    lines = [
        "| module | mutants | killed by tests | survived | audits | rejected | failed "
        "| said so | let it pass |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    of: dict[str, list[Mutant]] = {}
    for mutant in chosen:
        of.setdefault(mutant.path, []).append(mutant)
    for path, some in [*sorted(of.items()), ("all", chosen)]:
        results = [known.get(mutant.name, {}) for mutant in some]
        tried = [result["killed_by"] for result in results if "killed_by" in result]
        checks = Counter(_word(str(r["check"])) for r in results if "check" in r)
        name = path.removeprefix("shardaudit/")
        lines.append(
            f"| {name} | {len(tried)} | {sum(by is not None for by in tried)} "
            f"| {tried.count(None)} | {checks.total()} | {checks['rejected']} | {checks['failed']} "
            f"| {checks['said so']} | {checks['passed']} |"
        )
    survived = [m for m in chosen if known.get(m.name, {}).get("killed_by", "") is None]
    passed = [m for m in chosen if _word(str(known.get(m.name, {}).get("check"))) == "passed"]
    for title, some in (("Survived the tests", survived), ("Let the loss pass", passed)):
        lines += ["", f"{title}:", ""]
        lines += [
            f"- `{m.path.removeprefix('shardaudit/')}:{m.line}` {m.function}: {m.what}"
            for m in sorted(some, key=lambda m: (m.path, m.line))
        ] or ["- none"]
    return "\n".join(lines) + "\n"


def _word(check: str) -> str:
    if check in {"self-check", "invariant", "gate"}:
        return "rejected"
    if check.startswith("error"):
        return "failed"
    return "passed" if check in GOOD else "said so"


if __name__ == "__main__":
    main()
