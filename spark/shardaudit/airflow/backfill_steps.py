"""What the tasks of a backfill do between its two jobs: ask a person, and act on the answer."""

import logging
import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypedDict

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from shardaudit.airflow.forms import BACKFILL_FORM
from shardaudit.airflow.planned import CONFIG, PlannedJob, PlanRefusedError, configured, planned_job
from shardaudit.backfill.rules.approval import why_not_run
from shardaudit.backfill.rules.planned import Repair
from shardaudit.model.choices import Approval
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ConfigError, FinalError
from shardaudit.model.window import parse_instant

log = logging.getLogger(__name__)

PLAN, REPAIR, VERIFY = "plan", "repair", "verify"
COMMANDS = {Repair.MISSING: "backfill", Repair.DUPLICATES: "dedupe"}
REPAIRING = {Repair.MISSING: "replay", Repair.DUPLICATES: "remove"}  # the action of REPAIR
AUDIT_OF = ("stream", "from", "to")
OF_MISSING = ("from", "to", "shards", "include_stuck")
APPROVE, REJECT = "Approve", "Reject"


class Proposed(TypedDict):
    """The plan that is to be decided on; small enough for XCom."""

    plan_id: str
    markdown: str
    needs_person: bool


class RejectedError(FinalError, AirflowFailException):
    """Nobody approved the plan: it is cancelled, and nothing was done."""


def planning_job(form: Mapping[str, object]) -> PlannedJob:
    """The job that makes the plan which the form asks for.

    Raises:
        PlanRefusedError: what was asked cannot be done; says what was found and what would do.
    """
    try:
        unknown = sorted(set(form) - set(BACKFILL_FORM))
        if unknown:
            raise ConfigError(
                "run configuration", ", ".join(unknown), f"only {', '.join(BACKFILL_FORM)}"
            )
        settings, name = configured(), str(form["stream"])
        settings.stream(name)
        words = [f"--stream={name}", *_chosen(form)]
    except ConfigError as error:
        raise PlanRefusedError(str(error)) from error
    return _job(settings, form, {PLAN: words})


def _chosen(form: Mapping[str, object]) -> list[str]:
    """What a plan leaves out and takes in, as words of its command."""
    if _what(form) is Repair.DUPLICATES:
        given = [key for key in OF_MISSING if form.get(key)]
        if given:
            wanted = "none of them: a dedupe takes every live finding of the stream"
            raise ConfigError("run configuration", ", ".join(given), wanted)
        return []
    words = _instants(form, "from", "to", "as_of")
    words += ["--include-stuck"] if form.get("include_stuck") else []
    shards = form.get("shards")
    if isinstance(shards, list) and shards:
        words += [f"--shard={shard}" for shard in shards]  # never an option of its own
    return words


def proposed(form: Mapping[str, object], *, since: datetime, now: datetime) -> Proposed:
    """The plan that was made, for a person to read.

    Raises:
        AirflowSkipException: there is nothing to bring back, or the run is a dry one.
    """
    # Not at the module's top: it reads with pyarrow, and this file is parsed every few seconds.
    from shardaudit.backfill.proposal import dedupe_proposal, proposal  # noqa: PLC0415

    settings, name = configured(), str(form["stream"])
    as_of = form.get("as_of")
    at = now if as_of is None else parse_instant(str(as_of), where="as_of")
    if _what(form) is Repair.DUPLICATES:
        found = dedupe_proposal(settings, name, since=since)
    else:
        found = proposal(settings, name, since=since, as_of=at)
    if found is None:
        raise AirflowSkipException(f"nothing of {name} is to be put right")
    markdown = found.markdown
    first = why_not_run(name, settings.stream(name), spark_settings=settings.spark)
    if first and _what(form) is Repair.MISSING:
        markdown += f"\n\n**Before it can run:** {first}"
    for line in markdown.splitlines():
        log.info("%s", line)
    if form.get("dry_run"):
        raise AirflowSkipException(f"a dry run: plan {found.plan_id} waits for another one")
    backfill = settings.stream(name).backfill
    limit, size = backfill.auto_max_bytes, found.estimated_bytes
    by_policy = (
        backfill.approve is Approval.AUTO
        and limit is not None
        and size is not None
        and size <= limit
    )
    return {"plan_id": found.plan_id, "markdown": markdown, "needs_person": not by_policy}


def running_job(
    form: Mapping[str, object], plan: Proposed, answer: Mapping[str, Any] | None, *, now: datetime
) -> PlannedJob:
    """The job that runs the plan, in the name of who approved it: REPAIR, then VERIFY.

    Input:
        answer: of the approval task; None when policy approves.

    Raises:
        RejectedError: a person said no, or nobody answered; the plan is cancelled.
    """
    settings = configured()
    by: list[str] = []
    if answer is not None:
        by = [f"--approve-as={_approver(settings, form, plan, answer, now=now)}"]
    words = [f"--plan={plan['plan_id']}", *_instants(form, "as_of")]
    return _job(settings, form, {REPAIR: [*words, *by], VERIFY: words})


def _approver(
    settings: Settings,
    form: Mapping[str, object],
    plan: Proposed,
    answer: Mapping[str, Any],
    *,
    now: datetime,
) -> str:
    """Who approved the plan; without an approval it is cancelled."""
    from shardaudit.backfill.proposal import cancel_plan  # noqa: PLC0415 - as above

    user = answer.get("responded_by_user")
    who = str(user["name"]) if user else "nobody in time"
    if answer["chosen_options"] != [APPROVE]:
        reason = f"rejected by {who} at {now.isoformat(timespec='seconds')}"
        cancel_plan(settings, plan["plan_id"], what=_what(form), reason=reason, now=now)
        raise RejectedError(f"plan {plan['plan_id']} is cancelled: {reason}; nothing was done")
    return who


def _what(form: Mapping[str, object]) -> Repair:
    return Repair(str(form.get("what", Repair.MISSING.value)))


def forms_of_alarms(extras: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """One form of a backfill for each stream in which a shard is in alarm."""
    streams = sorted({str(alarm["stream"]) for extra in extras for alarm in extra["alarms"]})
    return [{"stream": name} for name in streams]


def audits_of_alarms(extras: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """One form of an audit for each stream in which messages are to be named: the newest."""
    newest = {str(form["stream"]): form for extra in extras for form in extra.get("audits", ())}
    return [{key: str(newest[name][key]) for key in AUDIT_OF} for name in sorted(newest)]


def _instants(form: Mapping[str, object], *keys: str) -> list[str]:
    given = {key: form.get(key) for key in keys}
    return [
        f"--{key.replace('_', '-')}={parse_instant(str(text), where=key).isoformat()}"
        for key, text in given.items()
        if text is not None
    ]


def _job(
    settings: Settings, form: Mapping[str, object], actions: Mapping[str, list[str]]
) -> PlannedJob:
    """A job with the words of each of its actions."""
    what = _what(form)
    common = ["--config", os.environ[CONFIG], COMMANDS[what]]
    names = {REPAIR: REPAIRING[what]}
    arguments = {key: [*common, names.get(key, key), *words] for key, words in actions.items()}
    return planned_job(settings, str(form["stream"]), arguments)
