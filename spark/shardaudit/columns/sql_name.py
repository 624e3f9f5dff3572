"""Names of other people's columns, and texts, in SQL."""

from collections.abc import Callable, Collection, Mapping

Having = Mapping[str, Collection[str]]  # by column the texts, or days, of which one is wanted


def quoted(column: str) -> str:
    """The name as one part, whatever characters it has."""
    return f"`{column.replace('`', '``')}`"


def literal(text: str) -> str:
    """The text as a literal of Spark SQL, whatever characters it has."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def has_one_of(having: Having, *, literal: Callable[[str], str] = literal) -> str:
    """That each of some columns has one of its values: a condition of SQL.

    Input:
        literal: a text in the SQL of whoever reads it.
    """
    return " AND ".join(
        f"{quoted(column)} IN ({', '.join(map(literal, values))})"
        for column, values in having.items()
    )
