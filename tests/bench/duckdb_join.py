"""The full outer join of both sides on the id, by DuckDB."""

import json
import sys

import duckdb

from tests.bench.timing import median_seconds


def main(folder: str) -> None:
    """Prints its seconds."""
    engine = duckdb.connect()
    engine.execute("set threads = 2; set memory_limit = '8GB'")

    def join() -> None:
        engine.execute(
            f"""
            with sent as (
              select shard_id, message_id, count(*) as n
              from '{folder}/traces/**/*.parquet' group by all
            ), landed as (
              select shard_id, message_id, count(*) as m
              from '{folder}/sink/**/*.parquet' group by all
            )
            select case when m is null then 'missing' when n is null then 'untraced'
              else 'duplicated' end as kind, count(*)
            from sent full join landed using (shard_id, message_id)
            where n is null or m is null or m > 1 group by all
            """  # noqa: S608 - our own folder
        ).fetchall()

    print(json.dumps({"duckdb_join": median_seconds(join)}))  # noqa: T201 - the result


if __name__ == "__main__":
    main(sys.argv[1])
