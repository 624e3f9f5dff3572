"""The form of a repair. Airflow refuses what does not fit, and says why."""

from airflow.sdk import Param

from shardaudit.airflow.audit_form import AUDIT_FORM
from shardaudit.backfill.rules.planned import Repair

BACKFILL_FORM = {
    "stream": Param(
        type="string",
        pattern=r"^[A-Za-z0-9_.-]{1,128}$",
        title="Stream",
        description="The name of a stream in shardaudit.toml.",
    ),
    "what": Param(
        Repair.MISSING.value,
        enum=[repair.value for repair in Repair],
        title="What",
        description="missing: read again what was lost. duplicates: leave one row of each message; "
        "the fields from From to Include stuck then stay empty.",
    ),
    "from": Param(
        None,
        type=["null", "string"],
        format="date-time",
        title="From",
        description="Start of what is to be read again. Empty: the open findings alone.",
    ),
    "to": Param(
        None,
        type=["null", "string"],
        format="date-time",
        title="To",
        description="Its end, itself not in it. Together with From.",
    ),
    "shards": Param(
        [],
        type="array",
        items={"type": "string", "pattern": r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"},
        title="Shards",
        description="Ids of shards. Empty: all of them.",
    ),
    "include_stuck": Param(
        False,
        type="boolean",
        title="Include stuck",
        description="Also what is behind a stopped shard: when its consumer resumes, it lands "
        "again.",
    ),
    "dry_run": Param(
        False, type="boolean", title="Dry run", description="Plans, tells, and stops there."
    ),
    "as_of": AUDIT_FORM["as_of"],
}
