"""What a person would write instead, in DuckDB: run as it stands, `duckdb_script.py FOLDER`."""

import json
import sys
from pathlib import Path

import duckdb
from deltalake import DeltaTable

folder = sys.argv[1]
is_json = any(Path(folder, "traces").glob("*.json*"))
traces = f"read_json('{folder}/traces/*')" if is_json else f"'{folder}/traces/*.parquet'"
sink = DeltaTable(f"{folder}/sink").file_uris()
engine = duckdb.connect()
engine.execute("set memory_limit = '8GB'")
found = engine.execute(
    f"""
    with sent as (select shard_id, message_id, count(*) n from {traces} group by all),
    landed as (select shard_id, message_id, count(*) m from read_parquet(?) group by all)
    select case when m is null then 'missing' when n is null then 'untraced' else 'duplicated' end,
      count(*)
    from sent full join landed using (shard_id, message_id)
    where n is null or m is null or m > 1 group by all
    """,  # noqa: S608 - our own folder
    [sink],
).fetchall()
print(json.dumps(dict(found)))  # noqa: T201 - the result
