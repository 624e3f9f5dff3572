"""Names of other people's columns, and texts, in SQL."""


def quoted(column: str) -> str:
    """The name as one part, whatever characters it has."""
    return f"`{column.replace('`', '``')}`"


def literal(text: str) -> str:
    """The text as a literal of Spark SQL, whatever characters it has."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
