"""What `shardaudit` on the path starts, as `python -m shardaudit` does.

Also where only the producer's part is installed.
"""

import importlib
import sys


def command() -> None:
    """One command line as a process, which ends here."""
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
