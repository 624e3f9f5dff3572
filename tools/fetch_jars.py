"""Fetches the jars that are missing or wrong; `--lock` writes `jars.lock` anew.

Run by `make setup` and `make lock`.
"""

import sys

from rich.console import Console

from shardaudit.adapters.engine.jars import SETS, fetch_jars, jar_problems, lock_jars
from shardaudit.model.errors import ShardauditError
from shardaudit.model.exit_code import ExitCode


def main(arguments: list[str]) -> int:
    """The exit code; one line of progress, one line of error."""
    console = Console(stderr=True, soft_wrap=True, markup=False, highlight=False)
    try:
        if arguments == ["--lock"]:
            console.print("resolving the jars anew …")
            lock_jars()
        for name in SETS:
            if jar_problems([name]):
                console.print(f"fetching the {name} jars (once) …")
                fetch_jars(name)
    except ShardauditError as error:
        console.print(f"error: {error}")
        return error.exit_code
    return ExitCode.DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
