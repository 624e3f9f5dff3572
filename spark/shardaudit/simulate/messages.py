"""The producer's messages and the order in which they are put, as DuckDB tables.

| table | one row is | columns |
|---|---|---|
| `messages` | a message | `i`, `message_id`, `hash_high` (of its 128 bits), `home` (its shard before any reshard), `lower` (which half of it), `draw` (64 random bits), `sent_ms` |
| `copies` | a message that is put a second time | `i` |
| `puts` (a view) | a put, in the order of `position` | a message's, `attempt`, `position`, `slot_ms` (when it arrives) |
"""  # noqa: E501 - a table's row

import duckdb

from shardaudit.simulate.scenario import Roles, Scenario

EDGE_MS = 1000  # the first and the last second stay empty: sent_at lies before the arrival
# A copy is put after this many more messages: the producer waited for an answer.
RETRY_AFTER = 3


def connect() -> duckdb.DuckDBPyConnection:
    """An engine of our own, in memory."""
    connection = duckdb.connect()
    connection.execute("set threads = 2")
    connection.execute(
        "set global TimeZone = 'UTC'"
    )  # else the machine's zone is written into the files
    connection.execute("set preserve_insertion_order = false")
    return connection


def create_messages(engine: duckdb.DuckDBPyConnection, scenario: Scenario) -> None:
    """Makes `messages`: evenly spread over the window, ids and hashes drawn by the seed."""
    slot_ms = slot_expression(scenario, "i")
    # As a table, because only the scan of a table is spread over the cores.
    engine.execute(f"create table numbers as select i from range({scenario.messages}) numbers(i)")  # noqa: S608 - a whole number
    engine.execute(f"""
        create table messages as
        with digests as (
            select i, md5_number('{scenario.seed}/' || i) as digest from numbers
        ),
        drawn as (
            select i, digest::uuid as message_id, (digest >> 64)::ubigint as hash_high,
                (digest & 18446744073709551615)::ubigint as draw
            from digests
        )
        select i, message_id, hash_high, draw,
            (((hash_high >> 32) * {scenario.shards}) >> 32)::bigint as home,
            (((hash_high >> 32) * {scenario.shards}) & 4294967295) < 2147483648 as lower,
            {slot_ms} - 20 - (draw % 880)::bigint as sent_ms
        from drawn
    """)  # noqa: S608 - whole numbers


def slot_expression(scenario: Scenario, message: str) -> str:
    """When the n-th message arrives, in milliseconds."""
    since_start_ms = f"({message}) * {_span_ms(scenario)} // {scenario.messages}"
    return f"({scenario.start_ms + EDGE_MS} + {since_start_ms})"


def step_ms(scenario: Scenario) -> float:
    """The time between two arrivals."""
    return _span_ms(scenario) / scenario.messages


def create_puts(engine: duckdb.DuckDBPyConnection, scenario: Scenario, parts: Roles) -> None:
    """Makes `copies`, chosen on ordinary shards and far from what else happens, and `puts`."""
    margin = max(20, scenario.messages // 50)
    away = [*parts.silent, *parts.stuck]
    engine.execute(f"""
        create table copies as
        select i from messages
        where i between {margin} and {scenario.messages - margin}
            and abs(i - {parts.reshard_at}) > {margin}
            and not list_contains({away}::bigint[], home)
        order by draw, i limit {scenario.count("retry")}
    """)  # noqa: S608 - whole numbers
    engine.execute(f"""
        create view puts as
        select *, 1 as attempt, 2 * i as position, {slot_expression(scenario, "i")} as slot_ms
        from messages
        union all
        select *, 2, 2 * (i + {RETRY_AFTER}) + 1, {slot_expression(scenario, f"i + {RETRY_AFTER}")}
        from messages semi join copies using (i)
    """)  # noqa: S608 - whole numbers


def position_of(message: int) -> int:
    """The position of a message's first put; copies have odd ones in between."""
    return 2 * message


def _span_ms(scenario: Scenario) -> int:
    return scenario.end_ms - scenario.start_ms - 2 * EDGE_MS
