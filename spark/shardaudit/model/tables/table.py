"""What a table of the warehouse is, and the numbers that its columns hang on."""

from dataclasses import dataclass

# That of the last step in store/migrations.py. A new column needs no step: see docs/upgrades.md.
WAREHOUSE_VERSION = 6
OLDEST_VERSION = 2  # that of shardaudit 0.1; what came before was never used
INTERNAL_PREFIX = "_sa_"

# Bin i of a latency counts those in (2^(i-1), 2^i] seconds, bin 0 up to 1 s; the last is open.
LATENCY_BINS = 22


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its columns as (name, Spark SQL type, meaning), its key and partition columns.

    `clustered`: the columns by whose values its readers skip files.
    """

    name: str
    columns: tuple[tuple[str, str, str], ...]
    key: tuple[str, ...]
    partitions: tuple[str, ...] = ()
    clustered: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The column names, in table order."""
        return [name for name, _, _ in self.columns]

    @property
    def ddl(self) -> str:
        """The schema as a Spark SQL struct, without comments."""
        return ", ".join(f"`{name}` {kind}" for name, kind, _ in self.columns)
