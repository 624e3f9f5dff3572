"""Which messages get which fault, what lands of them, and what an audit must find.

Works on `records` (see `records.py`): the stream's content with shards and sequence numbers.

Views over `records` and `faults`, alike whether a stream was between them or not.
"""

import duckdb

from shardaudit.model.errors import ConfigError
from shardaudit.model.verdict import Cause, Kind, State
from shardaudit.simulate.messages import landing, shard_id_of
from shardaudit.simulate.scenario import Roles, Scenario

# The last messages of a shard (or before its consumer stops) are left alone: they are its frontier.
CLEAN_TAIL = 6
MINUTE_MS = 60_000
# Before the end of the window nothing is planted, before the end of the audit nothing lands late.
CLEAN_END_MS, LATEST_LATE_MS = 10 * MINUTE_MS, 90 * MINUTE_MS

_LOST = "('lost', 'expired', 'cancel_lost')"
_DOUBLED = "('replay', 'cancel_doubled')"
# When the producer got the acknowledgement of a record: its deadline is counted from then on.
ACKED_MS = "arrived_ms + 30"

# What the audit must say of each fault, and the name under which it was asked for.
EXPECTED = {
    "lost": (Kind.MISSING, Cause.LOST, "lost"),
    "expired": (Kind.MISSING, Cause.LOST, "expired"),
    "cancel_lost": (Kind.MISSING, Cause.LOST, "cancel"),
    "cancel_doubled": (Kind.DUPLICATED, Cause.CONSUMER_REPLAY, "cancel"),
    "replay": (Kind.DUPLICATED, Cause.CONSUMER_REPLAY, "replay"),
    "retry": (Kind.DUPLICATED, Cause.PRODUCER_RETRY, "retry"),
    "untraced": (Kind.UNTRACED, Cause.TRACE_LOSS, "untraced"),
    "moved": (Kind.MOVED, Cause.RESHARD, "moved"),
    "silent_shard": (Kind.MISSING, Cause.STUCK, "silent_shard"),
    "stuck_shard": (Kind.MISSING, Cause.STUCK, "stuck_shard"),
}


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


def create_outcome(engine: duckdb.DuckDBPyConnection, scenario: Scenario, parts: Roles) -> None:
    """Makes the views `traces`, `sink_rows` and `planted`."""
    _create_traces(engine, scenario)
    _create_sink_rows(engine, scenario, parts)
    _create_planted(engine, scenario, parts)


def _create_traces(engine: duckdb.DuckDBPyConnection, scenario: Scenario) -> None:
    """Each put that was answered; of half the retries also the first, whose answer came late."""
    engine.execute(f"""
        create view traces as
        select i, message_id, '{scenario.stream}' as stream, shard_id, sequence_number,
            {_instant("sent_ms")} as sent_at, 'producer' as location, attempt::int as attempt,
            'producer-' || (1 + i % 2) as producer_id, {_instant(ACKED_MS)} as acked_at
        from records left join faults using (i)
        where fault is distinct from 'untraced'
            and not coalesce(fault = 'retry' and attempt = 1 and i % 2 = 1, false)
    """)  # noqa: S608 - the stream's name holds letters, digits, _ . -


def _create_sink_rows(engine: duckdb.DuckDBPyConnection, scenario: Scenario, parts: Roles) -> None:
    # Seconds as a rule, some up to 20; late ones 15 to 75 minutes.
    landed_ms = """
        arrived_ms + 400 + (draw % 4000)::bigint
        + case when draw % 53 = 0 then (draw % 15000)::bigint else 0 end
        + case when fault = 'late' then 900000 + (draw % 3600000)::bigint else 0 end
    """
    again_ms = "landed_ms + 60000 + (draw % 180000)::bigint"
    engine.execute(f"""
        create view deliveries as
        with read as (
            select records.*, fault, {landed_ms} as landed_ms
            from records left join faults using (i)
            where {landing(parts)} and (fault is null or fault not in {_LOST})
        )
        select * from read
        union all
        select * replace ({again_ms} as landed_ms) from read where fault in {_DOUBLED}
    """)  # noqa: S608 - whole numbers and our own expressions
    child = f"{scenario.shards} + case when shard = {parts.split or 0} then draw % 2 else 2 end"
    engine.execute(f"""
        create view sink_rows as
        select i, message_id,
            case when fault = 'moved' then {shard_id_of(child)} else shard_id end as shard_id,
            sequence_number, {_instant("sent_ms")} as sent_at, {_instant("landed_ms")} as landed_at,
            {_instant("arrived_ms")} as arrived_at,
            strftime(epoch_ms(sent_ms), '%Y-%m-%d') as day, payload
        from deliveries
    """)  # noqa: S608 - our own expressions


def _create_planted(engine: duckdb.DuckDBPyConnection, scenario: Scenario, parts: Roles) -> None:
    expected = ", ".join(
        f"('{fault}', '{kind}', '{cause}', '{name}')"
        for fault, (kind, cause, name) in EXPECTED.items()
    )
    silent = f"list_contains({list(parts.silent)}::bigint[], shard)"
    retention_ms = int(scenario.retention.total_seconds() * 1000)
    engine.execute(f"""
        create view planted as
        with struck as (
            select records.*, case when {landing(parts)} then fault when {silent}
                then 'silent_shard' else 'stuck_shard' end as planted_fault
            from records left join faults using (i)
            where attempt = 1
        )
        select '{scenario.stream}' as stream, shard_id, message_id, kind, cause,
            case when kind = '{Kind.MISSING}' and {ACKED_MS} < {scenario.horizon_ms}
                then '{State.EXPIRED}' else '{State.OPEN}' end as state,
            {_instant("sent_ms")} as sent_at,
            case when kind = '{Kind.MISSING}'
                then {_instant(f"{ACKED_MS} + {retention_ms}")} end as recoverable_until,
            name as fault
        from struck join (values {expected}) expected(planted_fault, kind, cause, name)
            using (planted_fault)
    """)  # noqa: S608 - closed lists and whole numbers


def _instant(ms: str) -> str:
    return f"make_timestamptz(({ms}) * 1000)"
