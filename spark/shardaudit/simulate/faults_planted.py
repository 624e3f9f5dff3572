"""Which messages get which fault, so that the right verdict is never in doubt.

Works on `records` (see `records.py`): the stream's content with shards and sequence numbers.
"""

import duckdb

from shardaudit.model.errors import ConfigError
from shardaudit.simulate.records import landing
from shardaudit.simulate.scenario import Roles, Scenario

# The last messages of a shard (or before its consumer stops) are left alone: they are its frontier.
CLEAN_TAIL = 6
MINUTE_MS = 60_000
# Before the end of the window nothing is planted, before the end of the audit nothing lands late.
CLEAN_END_MS, LATEST_LATE_MS = 10 * MINUTE_MS, 90 * MINUTE_MS


def create_faults(engine: duckdb.DuckDBPyConnection, scenario: Scenario, parts: Roles) -> None:
    """Makes `faults` (`i`, `fault`), at most one for each message.

    Raises:
        ConfigError: there are not so many messages that could have it.
    """
    _check_copies(engine, scenario)
    engine.execute("create table faults as select i, 'retry' as fault from copies")
    _create_candidates(engine, scenario, parts)
    kept = f"sent_ms >= {scenario.horizon_ms + 5 * MINUTE_MS}"
    ordinary = f"not list_contains({list(parts.stuck)}::bigint[], shard)"
    parents = [parts.split, *parts.merged] if parts.merged else []
    conditions = {
        "expired": f"sent_ms < {scenario.horizon_ms - MINUTE_MS}",
        "moved": f"list_contains({parents}::bigint[], shard)",
        "lost": kept,
        "replay": "true",
        "late": f"{ordinary} and sent_ms < {scenario.as_of_ms - LATEST_LATE_MS}",
        "untraced": "true",
    }
    _choose_pairs(engine, scenario, kept)
    for fault, condition in conditions.items():
        _choose(engine, fault, scenario.count(fault), condition=condition)


def _create_candidates(engine: duckdb.DuckDBPyConnection, scenario: Scenario, parts: Roles) -> None:
    """Makes the view `candidates`: messages that land, with later ones of their shard behind."""
    engine.execute(f"""
        create table tails as
        select shard, list_last(max(position, {CLEAN_TAIL})) as tail_position
        from records where {landing(parts)}
        group by shard having count(*) >= {CLEAN_TAIL}
    """)  # noqa: S608 - whole numbers
    clean_end_ms = scenario.end_ms - CLEAN_END_MS
    engine.execute(f"""
        create view candidates as
        select i, draw, shard, sent_ms
        from records semi join tails
            on records.shard = tails.shard and records.position < tails.tail_position
        where attempt = 1 and {landing(parts)} and sent_ms < {clean_end_ms}
            and i not in (select i from faults)
    """)  # noqa: S608 - whole numbers


def _choose(engine: duckdb.DuckDBPyConnection, fault: str, count: int, *, condition: str) -> None:
    engine.execute(f"""
        insert into faults
        select i, '{fault}' from candidates where {condition} order by draw, i limit {count}
    """)  # noqa: S608 - closed lists, our own conditions and whole numbers
    _require(engine, fault, wanted=count, found=f"fault = '{fault}'")


def _choose_pairs(engine: duckdb.DuckDBPyConnection, scenario: Scenario, condition: str) -> None:
    """Two messages of one cell: one to be lost, one to land twice, so that the counts agree."""
    count = scenario.count("cancel")
    engine.execute(f"""
        create table pairs as
        select min_by(i, draw) as lost, max_by(i, draw) as doubled
        from candidates where {condition}
        group by shard, sent_ms // {MINUTE_MS} having count(*) >= 2
        order by min(draw), lost limit {count}
    """)  # noqa: S608 - whole numbers and our own conditions
    engine.execute("insert into faults select lost, 'cancel_lost' from pairs")
    engine.execute("insert into faults select doubled, 'cancel_doubled' from pairs")
    _require(engine, "cancel", wanted=count, found="fault = 'cancel_lost'")


def _check_copies(engine: duckdb.DuckDBPyConnection, scenario: Scenario) -> None:
    found = _count(engine, "select count(*) from copies")
    if found < scenario.count("retry"):
        raise _too_many("retry", scenario.count("retry"), found)


def _require(engine: duckdb.DuckDBPyConnection, fault: str, *, wanted: int, found: str) -> None:
    chosen = _count(engine, f"select count(*) from faults where {found}")  # noqa: S608 - our own text
    if chosen < wanted:
        raise _too_many(fault, wanted, chosen)


def _count(engine: duckdb.DuckDBPyConnection, query: str) -> int:
    [(count,)] = engine.execute(query).fetchall()
    return int(count)


def _too_many(fault: str, wanted: int, found: int) -> ConfigError:
    return ConfigError(
        f"--fault {fault}", wanted, f"at most {found} among so many messages, shards and hours"
    )
