"""Who sits at the terminal."""

import getpass


def person() -> str:
    """The name of the account that runs the command."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container without an entry for its user
        return "unknown"
