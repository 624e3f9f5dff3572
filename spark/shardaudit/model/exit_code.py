"""How a command ends.

Which error ends it how says `errors.py`; what is no error of ours, `cli/main.py`; which verdict is
bad, each command.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command leaves behind for the shell and for Airflow (docs/contract.md)."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    BAD_VERDICT = 3
    RETRY = 75
