"""What `shardaudit` on the path starts, as `python -m shardaudit` does.

Also where only the producer's part is installed.
"""

import gc
import importlib
import sys

# What a command imports, two million objects, is never garbage: a look at it all took a quarter of
# the time, again and again. A command keeps what of this many objects is in circles.
_OBJECTS = 50_000


def command() -> None:
    """One command line as a process, which ends here."""
    gc.set_threshold(_OBJECTS)
    try:
        main = importlib.import_module("shardaudit.cli.main")
    except ModuleNotFoundError as error:
        sys.exit(
            f"shardaudit: the commands need {error.name}, which is not installed: "
            "pip install 'shardaudit[spark]', or [airflow] for the DAGs and the page as well"
        )
    main.process()


if __name__ == "__main__":
    command()
