"""Lines of random evidence, as files have them."""

import os

from shardaudit.model.tables.table import Table
from shardaudit.store.warehouse import Warehouse
from tests.cases import Terms
from tests.random_cases import FAULTS, random_terms

SEED = int(os.environ.get("SHARDAUDIT_PROPERTY_SEED", "20261121"))


def some_terms(number: int, *, faults: frozenset[str] = FAULTS) -> Terms:
    """The terms of that number: others with another seed."""
    return random_terms(SEED + number, faults=faults)


def lines(warehouse: Warehouse, table: Table) -> list[str]:
    return sorted(map(str, warehouse.read(table).drop("updated_at").collect()))
