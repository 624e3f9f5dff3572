"""Lines of random evidence, as files have them."""

import os

from shardaudit.model.tables.table import Table
from shardaudit.store.warehouse import Warehouse
from tests.cases import Terms
from tests.strategies import FAULTS, sample, terms

SEED = int(os.environ.get("SHARDAUDIT_PROPERTY_SEED", "20261121"))


def some_terms(number: int, *, faults: frozenset[str] = FAULTS) -> Terms:
    """Terms that are not hypothesis's first, simplest example."""
    return sample(terms(faults=faults), count=8, seed_number=SEED + number)[-1]


def lines(warehouse: Warehouse, table: Table) -> list[str]:
    return sorted(map(str, warehouse.read(table).drop("updated_at").collect()))
