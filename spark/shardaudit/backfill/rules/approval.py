"""Whether a plan may be run: who lets it, and whether the sink may be written at all.

`backfill/run.py` stores that it is approved, `dedupe_run.py` that of a dedupe.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Protocol

from shardaudit.backfill.rules.planned import WindowState
from shardaudit.model.config.choices import Approval, BackfillMode, SinkFormat
from shardaudit.model.config.parts import Backfill
from shardaudit.model.config.settings import Settings, Stream
from shardaudit.model.errors import ConfigError

POLICY = "policy"
_NOT_KEPT = "an earlier version's plan, without the settings that it was approved with"

# Delta's default store on S3 loses the commits of a second writer in silence. So do its others but
# one: they count on a rename or a create that one writer alone can win. Of a store of other people
# nothing is known, nor what another delegates to.
_LOG_STORE = "spark.delta.logStore.s3a.impl"
_MULTI_WRITER = "io.delta.storage.S3DynamoDBLogStore"


class Approvable(Protocol):
    """What is approved: a window of a backfill, or a dedupe as a whole."""

    @property
    def plan_id(self) -> str:
        """The plan's."""

    @property
    def state(self) -> WindowState:
        """Where it is in its life."""

    @property
    def approved_by(self) -> str | None:
        """Who approved it before."""

    @property
    def estimated_bytes(self) -> int | None:
        """What it reads; None: it removes, which a person approves always."""


def policy_limit(backfill: Backfill) -> int | None:
    """The bytes up to which policy lets a plan run; None: a person approves every plan."""
    return backfill.auto_max_bytes if backfill.approve is Approval.AUTO else None


def policy_of(parts: Sequence[Approvable], backfill: Backfill) -> str | None:
    """The name under which policy lets a plan run; None: a person approves it."""
    limit, sizes = policy_limit(backfill), [part.estimated_bytes for part in parts]
    known = [size for size in sizes if size is not None]
    if limit is None or len(known) < len(sizes) or sum(known) > limit:
        return None
    return f"{POLICY}: at most {sum(known):,} of {limit:,} bytes"


def approver(parts: Sequence[Approvable], backfill: Backfill, *, asked: str | None) -> str:
    """The name under which the plan runs: who approved it before, who asks now, or the policy.

    Input:
        parts: all of the plan, at least one.

    Raises:
        ConfigError: nobody did, or the plan was cancelled.
    """
    plan_id = parts[0].plan_id
    if any(part.state is WindowState.CANCELLED for part in parts):
        raise ConfigError("--plan", plan_id, "a plan that was not cancelled")
    before = [part.approved_by for part in parts if part.approved_by is not None]
    if before and all(part.state is not WindowState.PLANNED for part in parts):
        return before[0]
    to_do = [part for part in parts if not part.state.is_over]  # what the question is about
    who = (asked or "").strip() or policy_of(to_do, backfill)
    if who is None:
        wanted = "--approve-as NAME, the person who lets it run"
        raise ConfigError(f"plan {plan_id}", "no approval", wanted)
    return who


def dedupe_configured_for(settings: Settings, name: str) -> str:
    """What of the configuration says where a dedupe of the stream writes; JSON."""
    return json.dumps(_of_sink(settings, name), sort_keys=True)


def _of_sink(settings: Settings, name: str) -> dict[str, object]:
    stream = settings.stream(name)
    key, sink = f"streams.{name}", stream.sink
    return {
        "aws.region": settings.aws.region,
        f"{key}.stream_name": stream.stream_name,
        f"{key}.sink.path": sink.path,
        f"{key}.sink.format": sink.format.value,
        f"{key}.sink.columns": sink.columns,
    }


def configured_for(settings: Settings, name: str) -> str:
    """What of the configuration says where a backfill reads and writes, and how; JSON.

    No secret is part of it: of an address in a variable it has the variable's name.
    """
    stream = settings.stream(name)
    key, backfill = f"streams.{name}", stream.backfill
    values = _of_sink(settings, name) | {
        f"{key}.sink.derived": stream.sink.derived,
        f"{key}.backfill.mode": stream.backfill_mode.value,
        f"{key}.backfill.republish_to": backfill.republish_to,
        f"{key}.backfill.request_to": backfill.request_to,
        f"{key}.backfill.request_to_env": backfill.request_to_env,
        f"{key}.backfill.decoder": backfill.decoder,
        f"{key}.backfill.fields": backfill.fields,
    }
    return json.dumps(values, sort_keys=True)


def check_as_planned(plan_id: str, planned: str | None, *, configured: str, instead: str) -> None:
    """Returns when a plan would do what it was made, and approved, for.

    Input:
        planned: of `configured_for`, when it was; None: by a version that did not keep it.
        configured: the same, by now; instead: what else than setting it back can be done.

    Raises:
        ConfigError: it would read or write elsewhere, or otherwise; or nobody knows.
    """
    if planned is None:
        raise ConfigError(f"plan {plan_id}", _NOT_KEPT, instead)
    before, now = json.loads(planned), json.loads(configured)
    # Of what it held: a later version may hold more.
    other = [key for key, value in before.items() if value != now.get(key)]
    if other:
        found, was = ({key: of.get(key) for key in other} for of in (now, before))
        wanted = f"{was}, with which it was planned; or {instead}"
        raise ConfigError(f"plan {plan_id}", found, wanted)


def check_sink_is_safe(name: str, stream: Stream, *, spark_settings: Mapping[str, str]) -> None:
    """Returns when the stream's sink may be written by a backfill, or is not written by it.

    Raises:
        ConfigError: commits are not safe.
    """
    if stream.sink.place is not None and stream.backfill.mode is None:
        wanted = f"republish or request: it is {stream.sink.place} that makes rows of messages"
        raise ConfigError(f"streams.{name}.backfill.mode", "nothing", wanted)
    if stream.backfill_mode is BackfillMode.MERGE:
        _check_commits(name, stream, spark_settings)


def why_not_run(name: str, stream: Stream, *, spark_settings: Mapping[str, str]) -> str | None:
    """What must be set before a backfill of the stream can run; None when it can."""
    try:
        check_sink_is_safe(name, stream, spark_settings=spark_settings)
    except ConfigError as error:
        return str(error)
    return None


def check_dedupe(name: str, stream: Stream, *, spark_settings: Mapping[str, str]) -> None:
    """Returns when rows of the stream's sink may be removed.

    Raises:
        ConfigError: it is no Delta table, or commits are not safe.
    """
    if stream.sink.place is not None:
        wanted = "a sink that is a table: what a place made twice lies where its messages land"
        raise ConfigError(f"streams.{name}.sink.place", stream.sink.place, wanted)
    if stream.sink.format is not SinkFormat.DELTA:
        found = f"{stream.sink.format}"
        wanted = "delta: rows of a Parquet sink cannot be removed in one step"
        raise ConfigError(f"streams.{name}.sink.format", found, wanted)
    _check_commits(name, stream, spark_settings)


def _check_commits(name: str, stream: Stream, spark: Mapping[str, str]) -> None:
    is_on_s3 = stream.sink.path.startswith("s3a://")
    is_safe = not is_on_s3 or spark.get(_LOG_STORE) == _MULTI_WRITER
    if not is_safe and not stream.sink.exclusive:
        raise ConfigError(
            f"streams.{name}.sink.exclusive",
            stream.sink.exclusive,
            "true, when nobody else writes the sink while a backfill merges, or all its writers "
            f'share a log store that keeps them apart; or "{_LOG_STORE}" = "{_MULTI_WRITER}" under '
            "[spark], for all writers: Delta on S3 otherwise loses the commits of a second writer "
            "in silence",
        )
