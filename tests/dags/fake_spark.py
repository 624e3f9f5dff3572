"""A spark-submit that starts no Spark: it notes how it was called and does what a test planned."""

import json
from pathlib import Path

# FAKE_EXIT in its environment: {"<command> <stream>": exit code} as JSON, or by the last word of
# the call; 0 for the others.
_PROGRAM = """#!{python}
import json, os, sys
with open({calls!r}, "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
command = next(
    c for c in ("backfill", "dedupe", "audit", "ingest", "watch", "maintain") if c in sys.argv
)
named = (a for a in sys.argv if a.startswith(("--stream=", "--plan=")))
stream = next(named, "").partition("=")[2]
print("the words of", command, stream)
codes = json.loads(os.environ.get("FAKE_EXIT", "{{}}"))
sys.exit(codes.get(f"{{command}} {{stream}}", codes.get(sys.argv[-1], 0)))
"""


def install_fake_spark(folder: Path, *, python: str, name: str = "spark-submit") -> Path:
    """Writes the program; returns the file of its calls, one JSON list of arguments a line."""
    folder.mkdir()
    calls = folder / "calls.jsonl"
    program = folder / name
    program.write_text(_PROGRAM.format(python=python, calls=str(calls)))
    program.chmod(0o755)
    return calls


def read_calls(calls: Path) -> list[list[str]]:
    """The arguments of each call."""
    return [json.loads(line) for line in calls.read_text().splitlines()]
