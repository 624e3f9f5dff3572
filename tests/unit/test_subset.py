"""Pipeline code uses the proven subset of PySpark alone, and all of the subset has a table."""

import inspect
import re
from pathlib import Path

import pytest

from shardaudit.model.tables import (
    audit_tables,
    backfill_tables,
    gap_tables,
    route_tables,
    watch_tables,
)
from shardaudit.model.tables.table import Table
from tests.engines.differences import DIFFERENCES, Difference
from tests.engines.scan import refused
from tests.engines.subset import CASTS, DOOR, DOUBLES, LISTED
from tests.engines.worker import every_table

PACKAGE = Path(__file__).parents[2] / "spark" / "shardaudit"
MODULES = {str(file.relative_to(PACKAGE)): file for file in sorted(PACKAGE.rglob("*.py"))}
PYSPARK = "from pyspark.sql import functions as F\n"


def test_pipeline_stays_inside_the_subset() -> None:
    outside = {
        module: refused(file.read_text(), module=module)
        for module, file in MODULES.items()
        if module not in DOOR
    }
    found = [f"{module}:{place}" for module, places in outside.items() for place in places]
    assert found == []


def test_door_holds_modules_that_there_are() -> None:
    assert set(DOOR) <= set(MODULES)


def test_all_of_the_subset_has_a_table() -> None:
    covered = {name for table in every_table() for name in table.covers}
    assert LISTED - covered == set()
    assert covered - LISTED == set()


def test_tables_use_what_they_cover() -> None:
    sources = {table: inspect.getsource(table.rows) for table in every_table()}
    idle = [
        f"{table.name}: {name}"
        for table, source in sources.items()
        for name in table.covers
        if name.startswith(("F.", ".")) and name not in source
    ]
    assert idle == []


def test_tables_of_the_warehouse_have_types_of_the_subset() -> None:
    modules = (audit_tables, backfill_tables, gap_tables, route_tables, watch_tables)
    ours = [value for m in modules for value in vars(m).values() if isinstance(value, Table)]
    columns = [(name, kind) for table in ours for name, kind, _ in table.columns]
    words = {word for _, kind in columns for word in re.findall(r"\w+(?!\w*:)", kind)}
    assert words - {*CASTS, "struct"} == set()
    assert {name for name, kind in columns if "double" in kind} == set(DOUBLES)


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.idiom)
def test_difference_is_guarded_when_it_is_known(difference: Difference) -> None:
    """By a form that has a table, or by the check."""
    assert difference.forms or difference.refused
    assert set(difference.forms) <= {table.name for table in every_table()}
    for line in difference.refused:
        assert refused(PYSPARK + line, module="audit/some.py"), line


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("rows.select(F.expr('a + 1'))", "2: F.expr"),
        ("rows.select(F.udf(f)('a'))", "2: F.udf"),
        ("rows.selectExpr('a')", "2: .selectExpr"),
        ("rows.where('a > 1')", "2: SQL in a text: a > 1"),
        ("rows.where(f'a > {b}')", "2: SQL in a text: f'a > {b}'"),
        ("rows.agg({'a': 'max'})", "2: agg of a dictionary"),
        ("rows.persist()", "2: .persist"),
        ("rows.cache().count()", "2: .cache"),
        ("rows.rdd.map(f)", "2: rdd belongs to the JVM"),
        ("rows._jdf.queryExecution()", "2: _jdf belongs to the JVM"),
        ("spark.sparkContext.setLogLevel('x')", "2: sparkContext belongs to the JVM"),
        ("from delta.tables import DeltaTable", "2: delta.tables belongs to Apache Spark"),
        ("from pyspark.sql.functions import col", "2: pyspark.sql.functions.col"),
        ("from pyspark.sql import functions as G", "2: functions under another name"),
        ("import pyspark.sql.functions", "2: pyspark.sql.functions"),
        ("chosen = getattr(F, name)", "2: F.by itself"),
        ("rows.join(others, ['a'])", "2: join:None"),
        ("rows.join(others, ['a'], how='cross')", "2: join:cross"),
        ("rows.na.fill(0)", "2: .na"),
        ("rows.select(F.col('a').cast('float'))", "2: cast:float"),
        ("rows.select(F.col('a').cast(kind))", "2: cast:None"),
        ("rows.select(F.col('a') ** 2)", "2: op:**"),
        ("F.col('a').rlike(r'^\\d+\\z')", r"2: pattern '^\\d+\\z'"),
        ("PATTERN = '^a.b'\nF.col('a').rlike(PATTERN)", "3: pattern '^a.b'"),
        ("spark.read.format('delta').load(path)", "2: .load outside of adapters/"),
        ("spark.read.option('basePath', path)", "2: option(basePath)"),
        ("rows.write.format('csv')", "2: format(csv)"),
        ("at = row.sent_at.astimezone(UTC)", "2: .astimezone of a row's time: take it from `coll"),
        ("if settings.engine is EngineName.SPARK: pass", "2: which engine runs is for the door"),
        ("if settings.engine == 'embedded': pass", "2: which engine runs is for the door to ask"),
        ("if engine in ('spark', 'x'): pass", "2: which engine runs is for the door to ask"),
    ],
)
def test_check_refuses_by_name_and_line(line: str, said: str) -> None:
    assert any(place.startswith(said) for place in refused(PYSPARK + line, module="audit/some.py"))


@pytest.mark.parametrize(
    "line",
    [
        "rows.groupBy('a').agg(F.sum('n').alias('n')).where(F.col('n') > 0)",
        "rows.join(others, ['a'], how='left_anti')",
        "', '.join(names); f'{a}'.replace('a', 'b')",
        "import pyarrow.compute as pc\npc.field('a').cast(pa.int64())",
        "warehouse.read(TRACES); comparison.sample; row.text",
        "F.transform('a', lambda x: x['b']); F.filter('a', f); 10**14",
        "F.col('a').rlike(r'(?s)^[^a].*[.$]\\z')",
        "if self.engine is None or name not in set(EngineName): pass",
        "found = sorted(values, key=lambda value: value.at)",
    ],
)
def test_check_lets_pass_what_is_fine(line: str) -> None:
    assert refused(PYSPARK + line, module="audit/some.py") == []
