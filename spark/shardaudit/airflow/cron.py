"""When a DAG runs that the clock starts."""

from datetime import UTC, datetime, timedelta
from itertools import islice

from airflow.sdk import CronTriggerTimetable
from croniter import CroniterError, croniter

from shardaudit.model.errors import ConfigError

_FROM = datetime(2026, 1, 1, tzinfo=UTC)  # any: it counts from somewhere, and reads no clock
_FIELDS = 5


def by_clock(cron: str) -> CronTriggerTimetable:
    """Each time that the cron names, in UTC.

    Raises:
        ConfigError: cron cannot read it, or it never comes again.
    """
    # No start date, or switching the DAG on would at once run it as of its last time.
    when = CronTriggerTimetable(cron, timezone="UTC", run_immediately=timedelta(0))
    if not _comes_again(when):
        wanted = 'five fields of cron such as "0 2 * * *", or @daily and the like'
        raise ConfigError("dags(schedule=…)", cron, f"{wanted}. Correct it in this file")
    return when


def _comes_again(when: CronTriggerTimetable) -> bool:
    """Whether cron can read it: without seconds and years, so that it never ends."""
    try:
        list(islice(croniter(when.expression, _FROM, ret_type=datetime), 2))
    except CroniterError:
        return False
    return len(when.expression.split()) == _FIELDS
