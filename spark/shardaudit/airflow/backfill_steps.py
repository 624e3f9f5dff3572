"""What the tasks of a backfill do between its two jobs: ask a person, and act on the answer."""

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from shardaudit.airflow.forms import BACKFILL_FORM
from shardaudit.airflow.planned_jobs import PlannedJob, PlanRefusedError, configured, planned_job
from shardaudit.airflow.watch_news import shards_in_alarm, waits_for_audit
from shardaudit.backfill.rules.approval import why_not_run
from shardaudit.backfill.rules.planned import Repair
from shardaudit.model.config.parts import CONFIG
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ConfigError, FinalError, ShardauditError
from shardaudit.model.window import parse_instant
from shardaudit.model.words import counted
from shardaudit.report.plain import harmless

if TYPE_CHECKING:
    from shardaudit.backfill.proposal import Proposal

log = logging.getLogger(__name__)

PLAN, REPAIR, PROVE = "plan", "repair", "verify"
COMMANDS = {Repair.MISSING: "backfill", Repair.DUPLICATES: "dedupe"}
REPAIRING = {Repair.MISSING: "replay", Repair.DUPLICATES: "remove"}  # the action of REPAIR
AUDIT_OF = ("stream", "from", "to")
OF_MISSING = ("from", "to", "shards", "include_stuck")
APPROVE, REJECT = "Approve", "Reject"
# In no form that people see: `backfill_on_alarm` asks once more, behind the audit that it starts.
_ASKED_AGAIN = "asked_again"
_SHOWN_SHARDS = 20


class Proposed(TypedDict):
    """The plan that is to be decided on; small enough for XCom."""

    plan_id: str
    markdown: str
    needs_person: bool
    request_id: str
    approvers: list[str]  # their ids in Airflow; none: whoever may answer in Airflow
    not_by: str | None  # the name of who asked, where another person must approve


class RejectedError(FinalError, AirflowFailException):
    """Nobody approved the plan; what nobody ran of it is cancelled, and nothing was done."""


class ReplacedError(FinalError, AirflowFailException):
    """Somebody approved a plan that a newer one had replaced: nothing was done."""


class NotPlannedError(FinalError, AirflowFailException):
    """Shards are in alarm, and the plan of all that can be brought back has no window: red."""


def planning_job(form: Mapping[str, object], *, request_id: str) -> PlannedJob:
    """The job that makes the plan which the form asks for, and notes it for this run.

    Raises:
        PlanRefusedError: what was asked cannot be done; says what was found and what would do.
    """
    try:
        unknown = sorted(set(form) - {*BACKFILL_FORM, _ASKED_AGAIN})
        if unknown:
            raise ConfigError(
                "run configuration", ", ".join(unknown), f"only {', '.join(BACKFILL_FORM)}"
            )
        settings, name = configured(), str(form["stream"])
        settings.stream(name)
        words = [f"--stream={name}", *_chosen(form), f"--request={request_id}"]
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


def propose(
    form: Mapping[str, object], *, request_id: str, asker: str | None, now: datetime
) -> Proposed:
    """The plan that was made for this run, for a person to read; it replaces an older question.

    Input:
        asker: the name of who started the run; None: nobody, as after an alarm.

    Raises:
        AirflowSkipException: there is nothing to bring back, the run is a dry one, or a newer plan
        of the same part of the stream is already asked for.
        NotPlannedError: there is nothing to bring back yet, and shards are in alarm; not before
        the audit that the alarm asks for.
        PlanRefusedError: nobody is left who may approve it.
        NoPlanError: the command noted no plan for this run.
    """
    settings, name = configured(), str(form["stream"])
    found = _found(settings, form, request_id=request_id, asker=asker, now=now)
    backfill = settings.stream(name).backfill
    by_policy = found.policy is not None
    not_by = asker if backfill.four_eyes else None
    approvers = [one for one in backfill.approvers if one != not_by]
    if backfill.approvers and not approvers and not by_policy:
        said = f"streams.{name}.backfill.approvers: {not_by} alone, who asked for the plan"
        raise PlanRefusedError(f"{said}; wanted another name, as four_eyes is set")
    replaced = _ask(settings, request_id, is_decided=by_policy, now=now)
    parts = [found.markdown]
    if replaced:
        parts.append(f"It replaces what was asked before and not answered: {', '.join(replaced)}.")
    if not by_policy:
        parts += _who_may(approvers, not_by)
    return {
        "plan_id": found.plan_id,
        "markdown": "\n\n".join(parts),
        "needs_person": not by_policy,
        "request_id": request_id,
        "approvers": approvers,
        "not_by": not_by,
    }


def _found(
    settings: Settings,
    form: Mapping[str, object],
    *,
    request_id: str,
    asker: str | None,
    now: datetime,
) -> "Proposal":
    """The plan of this run, told in the log."""
    # Not at the module's top: it reads with pyarrow, and this file is parsed every few seconds.
    from shardaudit.backfill.proposal import dedupe_proposal, proposal  # noqa: PLC0415
    from shardaudit.backfill.questions import asked_plan  # noqa: PLC0415

    name, as_of = str(form["stream"]), form.get("as_of")
    at = now if as_of is None else parse_instant(str(as_of), where="as_of")
    plan_id = asked_plan(settings, request_id).plan_id
    alarmed = _in_alarm(settings, form, now=now)
    if plan_id is None:
        # By no audit's row: one that was killed says for long that it runs.
        is_first = asker is None and (
            form.get(_ASKED_AGAIN) is True or waits_for_audit(settings, name, now=now)
        )
        raise _nothing_planned(name, alarmed, is_first=is_first)
    is_dedupe = _what(form) is Repair.DUPLICATES
    found = (
        dedupe_proposal(settings, plan_id) if is_dedupe else proposal(settings, plan_id, as_of=at)
    )
    if found is None:
        raise AirflowSkipException(f"plan {plan_id} is over already")
    if absent := [shard for shard in alarmed if shard not in found.shards]:
        said = f"**In alarm, and in none of its windows:** {_names(absent)}"
        found = replace(found, markdown=f"{found.markdown}\n\n{said}")
    first = why_not_run(name, settings.stream(name), spark_settings=settings.spark)
    if first and not is_dedupe:
        found = replace(found, markdown=f"{found.markdown}\n\n**Before it can run:** {first}")
    for line in found.markdown.splitlines():
        log.info("%s", line)
    if form.get("dry_run"):
        raise AirflowSkipException(f"a dry run: plan {plan_id} waits for another one")
    return found


def _nothing_planned(
    name: str, alarmed: Sequence[str], *, is_first: bool
) -> NotPlannedError | AirflowSkipException:
    """Why a plan has no window; `is_first`: whoever asks will ask again, behind an audit."""
    if not alarmed:
        return AirflowSkipException(f"nothing of {name} is to be put right")
    if is_first:
        return AirflowSkipException(
            f"an audit of {name} comes first, or runs now; it is asked again when that is over"
        )
    return NotPlannedError(
        f"{name} is in alarm, and the plan has 0 windows: {_names(alarmed)}. What waits there is "
        "on its way, or not audited yet, or waits for its consumer: this is in a plan from 6 h "
        "before its reading must begin, or at once with include_stuck"
    )


def _in_alarm(settings: Settings, form: Mapping[str, object], *, now: datetime) -> list[str]:
    """The shards in alarm that a plan should have; none where a part of the stream was chosen."""
    is_of_all = _what(form) is Repair.MISSING and not any(form.get(key) for key in OF_MISSING[:3])
    return shards_in_alarm(settings, str(form["stream"]), now=now) if is_of_all else []


def _names(shards: Sequence[str]) -> str:
    named = ", ".join(map(harmless, shards[:_SHOWN_SHARDS]))
    more = len(shards) - _SHOWN_SHARDS
    return f"{named} and {counted(more, 'shard')} more" if more > 0 else named


def _ask(settings: Settings, request_id: str, *, is_decided: bool, now: datetime) -> list[str]:
    """Asks for the run's plan; the plans whose questions it replaces."""
    from shardaudit.backfill.questions import RequestState, ask_for  # noqa: PLC0415 - as above

    mine, older = ask_for(settings, request_id, is_decided=is_decided, now=now)
    if mine.state is RequestState.REPLACED:
        raise AirflowSkipException(f"plan {mine.plan_id} is not asked for: {mine.reason}")
    for one in older:
        log.info("plan %s of the run %s is no longer asked for", one.plan_id, one.request_id)
    return [f"plan {one.plan_id} of the run `{one.request_id}`" for one in older]


def _who_may(approvers: Sequence[str], not_by: str | None) -> list[str]:
    who = [f"It may be approved by {', '.join(approvers)}."] if approvers else []
    return who + ([f"Not by {not_by}, who asked for it."] if not_by else [])


def is_replaced(request_id: str) -> bool:
    """Whether a newer plan replaced the run's question; not, as long as nobody can say."""
    from shardaudit.backfill.questions import RequestState, asked_plan  # noqa: PLC0415 - as above

    try:
        return asked_plan(configured(), request_id).state is RequestState.REPLACED
    except ShardauditError as error:
        log.warning("whether it is still asked cannot be looked up: %s", error)
        return False


def act_on_answer(
    form: Mapping[str, object], plan: Proposed, answer: Mapping[str, Any] | None, *, now: datetime
) -> PlannedJob:
    """The job that runs the plan, in the name of who approved it: REPAIR, then PROVE.

    Input:
        answer: of the approval task; None when policy approves.

    Raises:
        RejectedError: a person said no, or nobody answered; the plan is cancelled.
        ReplacedError: a person approved it after a newer one had replaced it.
        AirflowSkipException: it was replaced, and nobody had answered.
    """
    settings = configured()
    by: list[str] = []
    if answer is not None:
        _end_question(settings, plan, answer, now=now)
        by = [f"--approve-as={_require_approval(settings, form, plan, answer, now=now)}"]
    words = [f"--plan={plan['plan_id']}", *_instants(form, "as_of")]
    return _job(settings, form, {REPAIR: [*words, *by], PROVE: words})


def _end_question(
    settings: Settings, plan: Proposed, answer: Mapping[str, Any], *, now: datetime
) -> None:
    """Ends the question; returns when nothing has replaced it."""
    from shardaudit.backfill.questions import RequestState, decide_request  # noqa: PLC0415

    asked = decide_request(settings, plan["request_id"], now=now)
    if asked.state is not RequestState.REPLACED:
        return
    said = f"plan {plan['plan_id']} is not asked for any more: {asked.reason}; nothing was done"
    if answer["chosen_options"] == [APPROVE]:
        raise ReplacedError(f"{said}. Answer the newer question")
    raise AirflowSkipException(said)


def _require_approval(
    settings: Settings,
    form: Mapping[str, object],
    plan: Proposed,
    answer: Mapping[str, Any],
    *,
    now: datetime,
) -> str:
    """Who approved the plan; without an approval what nobody ran of it is cancelled."""
    from shardaudit.backfill.proposal import cancel_plan  # noqa: PLC0415 - as above

    user = answer.get("responded_by_user")
    who = str(user["name"]) if user else "nobody in time"
    if answer["chosen_options"] != [APPROVE]:
        reason = f"rejected by {who} at {now.isoformat(timespec='seconds')}"
        done = cancel_plan(settings, plan["plan_id"], what=_what(form), reason=reason, now=now)
        others = f" ({'/'.join(done.others)})" if done.others else ""
        if not done.rows:
            said = f"{reason}, which cancels nothing: plan {plan['plan_id']} was taken up before"
            raise RejectedError(f"{said}{others}")
        rest = f", but not what was taken up before{others}" if others else ""
        raise RejectedError(
            f"plan {plan['plan_id']} is cancelled{rest}: {reason}; nothing was done"
        )
    return who


def _what(form: Mapping[str, object]) -> Repair:
    return Repair(str(form.get("what", Repair.MISSING.value)))


def forms_of_alarms(extras: Sequence[Mapping[str, Any]]) -> list[dict[str, str | bool]]:
    """One form of a backfill for each stream in which a shard is in alarm."""
    streams = sorted({str(alarm["stream"]) for extra in extras for alarm in extra["alarms"]})
    again = {form["stream"] for form in forms_to_ask_again(extras)}
    return [{"stream": name} | ({_ASKED_AGAIN: True} if name in again else {}) for name in streams]


def forms_to_ask_again(extras: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """One for each stream of which an audit names what lacks, also where the alarm is no news."""
    return [{"stream": form["stream"]} for form in audits_of_alarms(extras)]


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
