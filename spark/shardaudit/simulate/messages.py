"""The producer's messages, and what the stream holds of them, as DuckDB tables.

| table | one row is | columns |
|---|---|---|
| `messages` | a message | `i`, `message_id`, `hash_high` (of its 128 bits), `home` (its shard before any reshard), `lower` (which half of it), `draw` (64 random bits), `sent_ms` |
| `copies` | a message that is put a second time | `i` |
| `puts` (a view) | a put, in the order of `position` | a message's, `attempt`, `position`, `slot_ms` (when it arrives) |

| table | columns |
|---|---|
| `records` | `i` and `attempt` of the put, `position`, `message_id`, `shard` (its number), `shard_id`, `sequence_number`, `sent_ms`, `arrived_ms`, `draw`, `payload` |

Here it is made up, for large volumes; `consumer.py` reads it from a stream.
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


def shard_id(shard: int) -> str:
    """The id of a shard as Kinesis writes it."""
    return f"shardId-{shard:012d}"


def shard_id_of(shard: str) -> str:
    """The same as SQL over its number."""
    return f"('shardId-' || lpad(({shard})::varchar, 12, '0'))"


def payload() -> str:
    """The record's content, as SQL over a message: it carries the producer's id and time."""
    sent_at = "strftime(epoch_ms(sent_ms), '%Y-%m-%dT%H:%M:%S.%gZ')"
    return (
        """('{"message_id": "' || message_id || '", "sent_at": "' || """
        f"""{sent_at} || '", "amount": ' || draw % 100000 || '}}')"""
    )


def landing(parts: Roles) -> str:
    """The condition on `records` that the consumer reads them at all."""
    stops = [
        f"not (shard = {shard} and position >= {position_of(message)})"
        for shard, message in parts.stuck.items()
    ]
    is_read = f"not list_contains({list(parts.silent)}::bigint[], shard)"
    return " and ".join([is_read, *stops])


def create_made_up_records(
    engine: duckdb.DuckDBPyConnection, scenario: Scenario, parts: Roles
) -> None:
    """Makes `records` without a stream, as one would have stored them."""
    engine.execute(f"""
        create view made_up as
        select i, attempt, position, message_id, {_shard_at(scenario, parts)} as shard, sent_ms,
            slot_ms as arrived_ms, draw
        from puts
    """)  # noqa: S608 - whole numbers
    # 56 digits as on AWS: growing with the position, and from parent to child.
    number = "('4965' || lpad(shard::varchar, 20, '0') || '0000000000000000')"
    engine.execute(f"""
        create table shard_names as
        select shard, {shard_id_of("shard")} as shard_id, {number} as number_start
        from range({scenario.shards + 3}) shards(shard)
    """)  # noqa: S608 - our own expressions
    engine.execute(f"""
        create view records as
        select i, attempt, position, message_id::varchar as message_id, shard, shard_id,
            number_start || (1000000000000000 + position) as sequence_number,
            sent_ms, arrived_ms, draw, {payload()} as payload
        from made_up join shard_names using (shard)
    """)  # noqa: S608 - our own expressions


def _shard_at(scenario: Scenario, parts: Roles) -> str:
    """The shard that takes a put, as SQL: its home, or its home's child."""
    if parts.split is None or parts.merged is None:
        return "home"
    first_child = scenario.shards
    return f"""
        case when position < {position_of(parts.reshard_at)} then home
            when home = {parts.split} then {first_child} + (not lower)::bigint
            when home in {parts.merged} then {first_child + 2}
            else home end
    """
