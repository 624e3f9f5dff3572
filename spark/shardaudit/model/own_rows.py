"""By what the rows that our backfills landed are known again: the commit's tag, the file's name."""

import json

BACKFILL = "shardaudit backfill"
_PREFIX = "shardaudit-"


def backfill_tag(plan_id: str) -> str:
    """What a backfill's commit to a Delta sink bears as `userMetadata`."""
    return json.dumps({"by": BACKFILL, "plan_id": plan_id})


def is_backfill_tag(text: object) -> bool:
    """Whether a commit's `userMetadata` is that of a backfill."""
    if not isinstance(text, str):
        return False
    try:
        tag = json.loads(text)
    except ValueError:  # a user's own words
        return False
    return isinstance(tag, dict) and tag.get("by") == BACKFILL


def appended_name(job_id: str, name: str) -> str:
    """What a file is called that a backfill adds to a folder; `name`: what Spark called it."""
    return f"{_PREFIX}{job_id}-{name}"


def is_appended(path: str) -> bool:
    """Whether a file in a folder was added by a backfill."""
    return path.rpartition("/")[2].startswith(_PREFIX)
