"""Names of other people's columns in SQL."""


def quoted(column: str) -> str:
    """The name as one part, whatever characters it has."""
    return f"`{column.replace('`', '``')}`"
