"""Who lets a plan be run: a person, or the configuration's policy."""

from collections.abc import Mapping, Sequence

from shardaudit.backfill.rules.planned import WindowState
from shardaudit.model.choices import Approval
from shardaudit.model.config.parts import Backfill
from shardaudit.model.errors import ConfigError

POLICY = "policy"


def approver(
    windows: Sequence[Mapping[str, object]], *, asked: str | None, backfill: Backfill
) -> str:
    """The name under which the plan runs: who approved it before, who asks now, or the policy.

    Input:
        windows: the plan's rows of BACKFILLS, at least one.

    Raises:
        ConfigError: nobody did, or the plan was cancelled.
    """
    plan_id = str(windows[0]["plan_id"])
    if any(row["state"] == WindowState.CANCELLED for row in windows):
        raise ConfigError("--plan", plan_id, "a plan that was not cancelled")
    before = [str(row["approved_by"]) for row in windows if row["approved_by"] is not None]
    if before and all(row["state"] != WindowState.PLANNED for row in windows):
        return before[0]
    if asked is not None and asked.strip():
        return asked.strip()
    size_bytes = sum(int(str(row["estimated_bytes"])) for row in windows)
    limit = backfill.auto_max_bytes
    if backfill.approve is Approval.AUTO and limit is not None and size_bytes <= limit:
        return f"{POLICY}: at most {size_bytes:,} of {limit:,} bytes"
    raise ConfigError(
        f"plan {plan_id}", "no approval", "--approve-as NAME, the person who lets it run"
    )
