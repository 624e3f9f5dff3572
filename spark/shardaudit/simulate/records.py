"""What the stream holds once everything was put: one row is a record.

| table | columns |
|---|---|
| `records` | `i` and `attempt` of the put, `position`, `message_id`, `shard` (its number), `shard_id`, `sequence_number`, `sent_ms`, `arrived_ms`, `draw`, `payload` |

Here it is made up, for large volumes; `consumer.py` reads it from a stream.
"""  # noqa: E501 - a table's row

import duckdb

from shardaudit.simulate.messages import position_of
from shardaudit.simulate.scenario import Roles, Scenario


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
    heard = f"not list_contains({list(parts.silent)}::bigint[], shard)"
    return " and ".join([heard, *stops])


def create_made_up_records(
    engine: duckdb.DuckDBPyConnection, scenario: Scenario, parts: Roles
) -> None:
    """Makes `records` without a stream, as one would have stored them."""
    engine.execute(f"""
        create table made_up as
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
