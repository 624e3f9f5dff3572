"""The forms of runs by hand. Airflow refuses what does not fit, and says why.

What no field alone shows, `planned_jobs.py` refuses for an audit, `backfill_steps.py` for a repair.
"""

from airflow.sdk import Param

from shardaudit.backfill.rules.planned import Repair
from shardaudit.model.config.choices import NAME_PATTERN


def _time(title: str, description: str) -> Param:
    return Param(
        None, type=["null", "string"], format="date-time", title=title, description=description
    )


AUDIT_FORM = {
    "stream": Param(
        None,
        type=["null", "string"],
        pattern=NAME_PATTERN,
        title="Stream",
        description="The name of a stream in shardaudit.toml. Empty: all of them.",
    ),
    "from": _time("From", "Start of the window. Empty: the stream's audit_window before its end."),
    "to": _time("To", "End of the window, itself not in it. Empty: as of."),
    "as_of": _time("As of", "The now of the audit. Empty: the time of the run."),
}

BACKFILL_FORM = {
    "stream": Param(
        type="string",
        pattern=NAME_PATTERN,
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
