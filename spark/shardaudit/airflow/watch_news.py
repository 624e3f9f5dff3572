"""What watch and audit have found is told to people, and to the DAGs that listen.

And the alarm about the alarm: a retention watch that is not done in time.
"""

import asyncio
import hashlib
import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from airflow.sdk.exceptions import AirflowSkipException

from shardaudit.adapters.clock import now
from shardaudit.adapters.notifiers import OutgoingMessage, send
from shardaudit.airflow.planned_jobs import PlannedJob, config_file, configured
from shardaudit.airflow.telemetry import emit
from shardaudit.model.config.settings import Settings, load_settings
from shardaudit.model.errors import ShardauditError
from shardaudit.model.verdict import Level
from shardaudit.report.figures import budget_figures, health_figures, watch_figures
from shardaudit.report.health import WATCH_COUNTS_FOR

log = logging.getLogger(__name__)


def tell(planned: PlannedJob) -> int:
    """Sends what is pending of one stream; gives back how many messages that were.

    Raises:
        NotifierMissingError: the provider of a configured receiver is not installed.
        NotSentError: a receiver did not take a message; a later try sends it again.
    """
    # Not at the module's top: it reads with pyarrow, and this file is parsed every few seconds.
    from shardaudit.store.audits import watch_since  # noqa: PLC0415
    from shardaudit.watch.notify import notify_stream  # noqa: PLC0415

    settings, name = configured(), planned["stream"]
    at = now()
    last = watch_since(settings, name, since=at - WATCH_COUNTS_FOR, now=at)
    emit("watch", name, watch_figures(last))
    told = notify_stream(settings, name)
    _emit_health(settings, name)  # behind the alarms: they go out first
    return told


def tell_audits(planned: PlannedJob) -> int:
    """The same for what the stream's audits found to have changed."""
    from shardaudit.watch.notify import notify_audits  # noqa: PLC0415

    settings, name = configured(), planned["stream"]
    told = notify_audits(settings, name)
    _emit_health(settings, name)
    _emit_budget(settings, name)
    return told


def _emit_health(settings: Settings, name: str) -> None:
    """Sends the stream's health; fails no task: another try of it would find nothing to tell."""
    from shardaudit.store.health_times import read_health  # noqa: PLC0415 - as above

    try:
        emit("health", name, health_figures(read_health(settings, name, now=now())))
    except ShardauditError as error:
        log.warning("the health of %s is not sent: %s", name, error)


def _emit_budget(settings: Settings, name: str) -> None:
    """The same for its loss budget, if it has one."""
    from shardaudit.store.read_budget import newest_budget  # noqa: PLC0415 - as above

    try:
        budget = newest_budget(settings, name, now=now())
    except ShardauditError as error:
        log.warning("the loss budget of %s is not sent: %s", name, error)
        return
    if budget is not None:
        emit("budget", name, budget_figures(budget))


def alarm_extra(planned: Iterable[PlannedJob], last: Mapping[str, Any]) -> dict[str, Any]:
    """The asset event's `extra`: every shard that is warn or worse, and what to audit at once.

    By what the watch stored, whether or not a receiver took it.

    Input:
        last: the `extra` of the last event; empty: there was none.

    Raises:
        AirflowSkipException: nothing changed since the last event, or no shard is warn or worse;
        and nothing must be audited.
    """
    from shardaudit.watch.notify import alarms, audit_wanted  # noqa: PLC0415

    settings, names = configured(), [job["stream"] for job in planned]
    found = [news for name in names for news in alarms(settings, name, now=now())]
    known = sorted(news.notification_id for news in found)
    is_new = known != last.get("known")
    # Of an alarm that is news a plan is asked for now, and behind an audit: not one that runs.
    fresh = {news.stream for news in found if news.notification_id not in last.get("known", ())}
    wanted = {
        name: audit_wanted(settings, name, now=now(), is_news=name in fresh) for name in names
    }
    audits = [
        {"stream": name, "from": window.start.isoformat(), "to": window.end.isoformat()}
        for name, window in wanted.items()
        if window is not None
    ]
    if not audits and not found:
        raise AirflowSkipException("no shard is warn or worse")
    if not audits and not is_new:
        raise AirflowSkipException("nothing is new since the last event")
    return {
        "audits": audits,
        "known": known,  # for the next watch: also what is no news at this one
        "alarms": [
            {
                "notification_id": news.notification_id,
                "stream": news.stream,
                "shard_id": news.shard_id,
                "level": news.level.value,
                "text": news.text,
            }
            for news in found
            if is_new  # else it was asked for
        ],
    }


def shards_in_alarm(settings: Settings, name: str, *, now: datetime) -> list[str]:
    """The shards of the stream that are warn or worse, the most urgent first."""
    from shardaudit.watch.notify import alarms  # noqa: PLC0415 - as above

    return [news.shard_id for news in alarms(settings, name, now=now)]


def waits_for_audit(settings: Settings, name: str, *, now: datetime) -> bool:
    """Whether an audit is wanted that has not begun: who asks for it asks for a plan behind it."""
    from shardaudit.watch.notify import audit_wanted  # noqa: PLC0415 - as above

    return audit_wanted(settings, name, now=now) is not None


async def tell_late(context: Mapping[str, Any]) -> None:  # Any: what Airflow gives a callback
    """Airflow's callback of a missed deadline: tells every receiver, under the run's own id.

    Raises:
        PlanRefusedError: the environment names no configuration.
        ConfigError: it cannot be read.
        NotSentError: a receiver did not take it.
    """
    await asyncio.to_thread(_tell_late, context)  # notifiers wait, the triggerer's loop may not


def _tell_late(context: Mapping[str, Any]) -> None:  # Any: as above
    run = context.get("dag_run") or {}
    run_id = str(run.get("dag_run_id") or run.get("run_id") or "unknown")
    message = OutgoingMessage(
        message_id=hashlib.sha256(f"late\n{run_id}".encode()).hexdigest()[:24],
        stream="all",
        level=Level.WARN.value,
        title="shardaudit: the retention watch is late",
        text=f"run {run_id} of retention_watch has not succeeded in time: what stops now may "
        "be seen by nobody. See its tasks in Airflow",
    )
    log.warning("%s: %s", message.title, message.text)
    send(load_settings(config_file()).notify, message)
