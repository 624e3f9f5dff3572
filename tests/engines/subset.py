"""The list: what of PySpark the pipeline may use. All of it has a table, equal on both engines.

Names are as in the tables' `covers`: `F.sum`, `.join` (of frames, columns, sessions …), `op:+`,
`join:left`, `cast:bigint` (also of `try_cast`), `type:map` (of columns). Whoever needs another one
adds its table of nasty values; where the engines differ, `differences.py` tells the form to use.
"""

FUNCTIONS = [
    "aggregate", "array", "array_distinct", "array_intersect", "array_sort", "bit_xor",
    "broadcast", "coalesce", "col", "collect_list", "collect_set", "concat", "concat_ws",
    "count", "count_if", "date_format", "desc", "exists", "explode", "filter", "flatten", "get",
    "greatest", "hex", "lag", "least", "length", "lit", "make_valid_utf8", "map_entries",
    "map_from_entries", "max", "max_by", "min", "min_by", "nullif", "octet_length", "pmod",
    "regexp_replace", "row_number", "rtrim", "sequence", "shiftright", "size", "slice",
    "sort_array", "struct", "substring", "sum", "timestamp_micros", "to_date", "to_json",
    "transform", "translate", "unhex", "unix_micros", "when", "xxhash64",
]  # fmt: skip

# Of columns, frames, groups, windows and sessions. Python's own names among them are proven, too.
METHODS = [
    "agg", "alias", "asDict", "asc_nulls_last", "between", "bitwiseAND", "cast", "collect",
    "columns", "contains", "count", "createDataFrame", "desc", "distinct", "drop", "dtypes",
    "endswith", "eqNullSafe", "fillna", "filter", "first", "groupBy", "isEmpty", "isNotNull",
    "isNull", "isin", "join", "limit", "localCheckpoint", "mapInArrow", "orderBy", "otherwise",
    "over", "partitionBy", "range", "rangeBetween", "rlike", "schema", "select",
    "sortWithinPartitions", "startswith", "try_cast", "union", "unionByName", "when", "where",
    "withColumn", "withColumns",
]  # fmt: skip

# Of a reader and a writer; `PLACES` says where.
FILES = [
    "createOrReplaceTempView", "format", "load", "mode", "option", "parquet", "read", "save",
    "sql", "write",
]  # fmt: skip

OPERATORS = [
    "+", "-", "*", "/", "%", "neg", "~", "&", "|", "==", "!=", "<", "<=", ">", ">=", "[]",
]  # fmt: skip
JOINS = [
    "inner", "left", "full_outer", "left_semi", "left_anti",
]  # fmt: skip
CASTS = [
    "string", "bigint", "int", "double", "boolean", "binary", "date", "timestamp", "array",
    "map",
]  # fmt: skip
TYPES = [
    "timestamp", "date", "interval", "array", "map", "struct",
]  # fmt: skip
OPTIONS = {"format": ["delta"], "mode": ["append", "overwrite"], "option": ["replaceWhere"]}

LISTED = frozenset(
    [
        *(f"F.{name}" for name in FUNCTIONS),
        *(f".{name}" for name in METHODS + FILES),
        *(f"op:{name}" for name in OPERATORS),
        *(f"join:{name}" for name in JOINS),
        *(f"cast:{name}" for name in CASTS),
        *(f"type:{name}" for name in TYPES),
    ]
)

# Classes that the pipeline may import; the types tell what a user's sink has.
CLASSES = {
    "pyspark.sql": ["Column", "DataFrame", "Row", "SparkSession", "Window", "functions"],
    "pyspark.sql.types": [
        "DataType",
        "IntegralType",
        "StringType",
        "StructType",
        "TimestampNTZType",
        "TimestampType",
    ],
    "pyspark.errors": ["PySparkException"],
    "pyspark": ["cloudpickle"],
    "pyspark.sql.pandas.types": ["from_arrow_schema"],
}

# What reads or writes stands where files and schemas are looked at before and after.
PLACES = {
    "conf": ("adapters/files/sources.py",),  # how many files are read at once
    "load": ("adapters/", "store/warehouse.py"),
    "mapInArrow": ("adapters/",),
    "parquet": ("adapters/",),
    "save": ("store/warehouse.py",),
    "sql": ("store/warehouse.py",),
    "createOrReplaceTempView": ("store/warehouse.py",),
}
# May cast to a type that a variable holds: those of our tables, of a sink's columns, of numbers.
CASTERS = (
    "store/warehouse.py",
    "adapters/lake/sink_rows.py",
    "ingest/rules/batch_summary.py",
    "ingest/rules/refused_traces.py",
    "ingest/rules/repeats.py",
    "ingest/rules/refused_traces.py",
)
# Columns of our tables that hold doubles: delta-rs reads them, see `differences.py`. INPUTS have
# columns of the same names.
DOUBLES = [
    "estimated_seconds", "hours_to_read", "latency_p50", "latency_p99", "sample_rate",
    "trace_coverage",
]  # fmt: skip
INPUTS = ("adapters/", "ingest/rules/refused_traces.py")
# May ask which engine runs: they start one, or tell people what it needs.
CHOOSERS = ("adapters/engine/", "cli/doctor.py", "airflow/launch.py")

# Not read by the check: what starts an engine, and what Apache Spark alone runs, on either setting.
DOOR = {
    "adapters/engine/apache_spark.py": "starts Apache Spark",
    "adapters/engine/written.py": "writes the embedded engine's files of a Delta table",
    "adapters/engine/door.py": "chooses between them",
    "adapters/engine/collected.py": "asks for rows without a question for their schema",
    "adapters/engine/held.py": "gives each engine small frames as it likes them",
    "adapters/engine/embedded.py": "starts the embedded engine",
    "adapters/engine/connect.py": "knows how PySpark releases a server's checkpoints",
    "adapters/engine/engine_errors.py": "knows py4j's errors",
    "adapters/engine/jars.py": "has Apache Spark resolve its own jars",
    "adapters/lake/delta_sink_writer.py": "writes into a user's sink with Delta's own writer",
    "adapters/lake/parquet_append.py": "writes into a user's sink with Spark's own writer",
    "backfill/rules/copies.py": "finds what is deleted from a user's sink, by Spark's own JSON",
    "backfill/rules/decode.py": "reads replayed records with Spark's variants",
    "backfill/replay_run.py": "replays",
    "backfill/run.py": "replays",
    "backfill/landing.py": "looks into the sink that is written",
    "backfill/kinesis_source.py": "reads Kinesis by a Python data source",
    "backfill/dedupe_run.py": "deletes from a user's sink",
}
