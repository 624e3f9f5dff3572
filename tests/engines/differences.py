"""Where the engines were seen to differ in silence, and what guards each place.

`forms`: tables in which the form that we use comes out the same. `refused`: what the check does not
let in. What concerns the reading of files (missing, empty, damaged, half a table) is in the tests
of the readers; the check keeps reading and writing where they are.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """One idiom on which the engines differ."""

    idiom: str
    forms: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


DIFFERENCES = (
    Difference(
        "a path that is missing is no error",
        refused=("spark.read.format('delta').load(path)", "spark.read.parquet(path)"),
    ),
    Difference(
        "a value that does not fit is stored as NULL",
        ("rows_of_a_warehouse",),
        ("rows.write.format('delta').mode('append').save(path)", "rows.write.insertInto('t')"),
    ),
    Difference("an order is lost in a write", ("rows_of_python",), ("rows.write.save(path)",)),
    Difference(
        "persist does nothing, hints are ignored",
        ("kept_rows", "left_joins"),
        ("rows.persist()", "rows.cache()", "rows.unpersist()", "rows.hint('broadcast')"),
    ),
    Difference(
        "a frame on a path sees later writes",
        ("kept_rows",),
        ("spark.read.option('versionAsOf', 3)", "spark.read.table('t')"),
    ),
    Difference(
        "NULL in a field of a struct, in min, max, min_by, least",
        (
            "groups_of_sequence_numbers",
            "groups_of_instants",
            "keys_of_sequence_numbers",
            "attributes_of_the_first",
            "windows",
            "missing_messages",
            "evidence_of_ids",
        ),
        ("rows.select(F.array_min('a'))", "rows.select(F.array_max('a'))"),
    ),
    Difference(
        "structs are compared and united by place or by name",
        ("unions_of_structs", "keys_of_sequence_numbers", "arrays_of_keys"),
    ),
    Difference(
        "sums and products past 64 bits wrap",
        ("arithmetic_within_64_bits", "groups_of_longs", "fingerprints_of_odd_ids"),
        ("F.try_add('a', 'b')", "F.col('a').cast('decimal(38,0)')"),
    ),
    Difference(
        "numbers past the range become 1970",
        ("micros_of_any_size",),
        ("F.timestamp_millis('a')", "F.timestamp_seconds('a')"),
    ),
    Difference(
        "fractions of seconds are cut off",
        ("micros_there_and_back",),
        ("F.timestamp_seconds(F.lit(1.5))", "F.make_dt_interval(secs=F.lit(1.5))"),
    ),
    Difference(
        "seconds before 1970 are rounded up",
        ("micros_there_and_back", "hours_of_a_ledger", "folded"),
        ("F.unix_seconds('a')", "F.unix_millis('a')", "F.unix_timestamp('a')"),
    ),
    Difference(
        "JSON: big integers, overflows, corrupt lines, strictness",
        refused=(
            "F.from_json('a', 'x string')",
            "F.get_json_object('a', '$.x')",
            "F.json_tuple('a')",
        ),
    ),
    Difference(
        "variants: quotes, NULLs, numbers through a double",
        refused=(
            "F.parse_json('a')",
            "F.try_parse_json('a')",
            "F.try_variant_get('a', '$', 'string')",
            "from pyspark.sql.types import VariantType",
        ),
    ),
    Difference(
        "columns of partition folders, their NULLs and types",
        refused=("spark.read.option('basePath', path)", "spark.read.option('mergeSchema', 'true')"),
    ),
    Difference(
        "several paths, odd names, hidden files",
        refused=("spark.read.parquet(*paths)", "spark.read.option('modifiedAfter', at)"),
    ),
    Difference(
        "files with other columns where no schema is given",
        ("rows_of_a_parquet_file",),
        ("spark.read.parquet(path)", "spark.read.json(path)"),
    ),
    Difference("substring of binary counts characters", ("pieces_of_texts",)),
    Difference(
        "NaN and -0.0 as keys and in orders",
        ("doubles", "shares"),
        ("F.nanvl('a', 'b')", "rows.dropDuplicates()"),
    ),
    Difference(
        "array_contains, arrays_overlap and is_valid_utf8 with NULL",
        ("single_arrays", "pairs_of_arrays"),
        ("F.array_contains('a', 1)", "F.arrays_overlap('a', 'b')", "F.is_valid_utf8('a')"),
    ),
    Difference("control characters in JSON", ("json_of_texts", "rows_that_are_refused")),
    Difference(
        "a double that is alone in a file of a table: its last digit, and filters on it",
        ("rows_with_doubles", "values_alone_in_their_files"),
        ("rows.where(F.col('trace_coverage') > 0.5)", "rows.select('hours_to_read')"),
    ),
    Difference(
        "times and doubles as texts",
        ("rows_that_are_refused", "days_and_texts_of_instants", "answers_to_a_canary"),
        ("F.format_string('%s', 'a')", "F.to_char('a', '9')"),
    ),
    Difference(
        "regular expressions: classes, dots and ends",
        ("patterns",),
        (
            r"F.col('a').rlike('\\d')",
            r"F.col('a').rlike('\\w')",
            r"F.col('a').rlike('\\s')",
            "F.col('a').rlike('a.b')",
            "F.col('a').rlike('^a$')",
            "F.regexp_replace('a', '(?i)a', 'b')",
            "F.col('a').like('a_')",
        ),
    ),
    Difference(
        "quantiles are interpolated",
        ("facts_of_each_shard",),
        ("F.percentile_approx('a', 0.99)", "F.median('a')"),
    ),
    Difference(
        "powers differ in the last digit, functions of doubles are rounded otherwise",
        ("facts_of_each_shard", "ints"),
        ("F.pow('a', 'b')", "F.col('a') ** 2", "F.round('a', 2)", "F.ceil('a')"),
    ),
    Difference("hashes of long decimals", refused=("F.col('a').cast('decimal(38,0)')",)),
    Difference("floats that are made doubles", refused=("F.col('a').cast('float')",)),
    Difference(
        "a session's zone other than UTC",
        ("instants_without_a_zone", "texts_of_instants"),
        ("spark.conf.set('spark.sql.session.timeZone', 'x')",),
    ),
    Difference("renamed columns keep their case", refused=("rows.withColumnRenamed('a', 'B')",)),
    Difference(
        "NULL beside an empty list is true of `~isin`, or NULL",
        ("questions_about_texts",),
        ("~F.col('a').isin([])", "~F.col('a').isin()", "~F.col('a').isin(list(names))"),
    ),
    Difference(
        "capitals of letters that Java does not know yet",
        ("hashes_of_every_code_point",),
        ("F.upper('a')", "F.lower('a')", "F.initcap('a')"),
    ),
    Difference(
        "unions of columns that are missing or of other types",
        ("unions", "summaries_of_batches", "ledgers_that_are_read_anew"),
        ("rows.unionByName(others, allowMissingColumns=True)",),
    ),
    Difference(
        "of the hour that a clock repeats the driver gets the first",
        ("instants_on_the_driver",),
        ("at = row.sent_at.astimezone(UTC)",),
    ),
    Difference(
        "of rows that are alike in an order any may come first",
        ("groups_of_sequence_numbers", "summaries_of_batches", "first_rows_in_an_order"),
        ("F.first('a')", "F.last('a')", "F.mode('a')", "F.monotonically_increasing_id()"),
    ),
    Difference(
        "random numbers and clocks inside of plans",
        refused=("F.rand()", "F.uuid()", "F.current_timestamp()", "rows.sample(0.1)"),
    ),
)
