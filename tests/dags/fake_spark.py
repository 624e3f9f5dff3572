"""A spark-submit that starts no Spark: it notes how it was called and does what a test planned.

The same as the program that the embedded engine's tasks start.
"""

import json
from pathlib import Path

# FAKE_EXIT in its environment: {"<command> <stream>": exit code} as JSON, or by the last two
# words of the call; 0 for the others, below zero a signal that ends it. FAKE_PLAN: the id of the
# stored plan that `backfill plan` notes for who asks.
_PROGRAM = """#!{python}
import json, os, sys, time
with open({calls!r}, "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
command = next(
    c for c in ("backfill", "dedupe", "audit", "watch", "maintain") if c in sys.argv
)
named = (a for a in sys.argv if a.startswith(("--stream=", "--plan=")))
stream = next(named, "").partition("=")[2]
with open({pid!r}, "w") as noted:
    noted.write(str(os.getpid()))
print("the words of", command, stream, flush=True)
codes = json.loads(os.environ.get("FAKE_EXIT", "{{}}"))
asked = next((a for a in sys.argv if a.startswith("--request=")), "").partition("=")[2]
if asked and "FAKE_PLAN" in os.environ:
    from pathlib import Path
    from shardaudit.adapters.clock import now
    from shardaudit.backfill.questions import AskedPlan, store_request
    from shardaudit.backfill.rules.planned import Repair
    from shardaudit.model.config.settings import load_settings
    settings = load_settings(Path(sys.argv[sys.argv.index("--config") + 1]))
    plan = AskedPlan(asked, stream, Repair.MISSING, os.environ["FAKE_PLAN"])
    store_request(settings, plan, now=now())
code = codes.get(f"{{command}} {{stream}}", codes.get(" ".join(sys.argv[-2:]), 0))
if code < 0:
    os.kill(os.getpid(), -code)
time.sleep(float(os.environ.get("FAKE_SECONDS", "0")))
sys.exit(code)
"""


def install_fake_spark(folder: Path, *, python: str, name: str = "spark-submit") -> Path:
    """Writes the program; returns the file of its calls, one JSON list of arguments a line."""
    folder.mkdir()
    calls = folder / "calls.jsonl"
    program = folder / name
    program.write_text(_PROGRAM.format(python=python, calls=str(calls), pid=str(folder / "pid")))
    program.chmod(0o755)
    return calls


def install_fake_command(folder: Path) -> Path:
    """Writes a `shardaudit.cli.main` for PYTHONPATH; returns the file of its calls."""
    package = folder / "shardaudit" / "cli"
    package.mkdir(parents=True)
    for initial in (package.parent, package):
        (initial / "__init__.py").touch()
    calls = folder / "calls.jsonl"
    (package / "main.py").write_text(
        _PROGRAM.format(python="none", calls=str(calls), pid=str(folder / "pid"))
    )
    return calls


def read_calls(calls: Path) -> list[list[str]]:
    """The arguments of each call."""
    return [json.loads(line) for line in calls.read_text().splitlines()]
