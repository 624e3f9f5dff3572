"""What may be said of a DAG of ours where it is called: when it runs, where, and whose it is.

A wrong argument is refused while Airflow parses the file that calls.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import TypedDict

from airflow.sdk import CronTriggerTimetable
from croniter import CroniterError, croniter

from shardaudit.model.errors import ConfigError


class Placed(TypedDict, total=False):
    """Airflow's own words. What is left out is as Airflow's configuration has it."""

    pool: str
    queue: str
    conn_id: str  # of the Spark connection
    owner: str


class Scheduled(Placed, total=False):
    """The same of a DAG that the clock starts."""

    schedule: str  # five fields of cron, or @daily and the like; in UTC


_WANTED = {
    "pool": "the name of one of Airflow's pools",
    "queue": "the name of a queue of the executor",
    "conn_id": "the id of a Spark connection in Airflow",
    "owner": "who is shown as the owner of the tasks",
    "schedule": 'five fields of cron such as "0 2 * * *", or @daily and the like',
}
_FROM = datetime(2026, 1, 1, tzinfo=UTC)  # any: it counts from somewhere, and reads no clock
_FIELDS = 5
_RUNS = 100  # a day of quarters of an hour
# Of a quarter of an hour 14 minutes: it is told before the next run is due.
_IN_TIME = 14 / 15


def placed(dag_id: str, given: Placed) -> dict[str, str]:
    """The default arguments of the DAG's tasks.

    Raises:
        ConfigError: an argument that there is not, or one that is empty or no text.
    """
    return _texts(dag_id, given, Placed)


def scheduled(
    dag_id: str, given: Scheduled, *, every: str
) -> tuple[CronTriggerTimetable, dict[str, str]]:
    """When the DAG runs, by default `every`; and the default arguments of its tasks.

    Raises:
        ConfigError: as `placed`; a cadence that cron cannot read, or that never comes.
    """
    texts = _texts(dag_id, given, Scheduled)
    cron = texts.pop("schedule", every)
    # No start date, or switching the DAG on would at once run it as of its last time.
    when = CronTriggerTimetable(cron, timezone="UTC", run_immediately=timedelta(0))
    if not _comes_again(when):
        raise _refused(f"{dag_id}(schedule=…)", cron, _WANTED["schedule"])
    return when, texts


def in_time(when: CronTriggerTimetable) -> timedelta:
    """Within what time a run must be done: shortly before the next, where they come closest."""
    return min(later - one for one, later in pairwise(_runs(when, _RUNS))) * _IN_TIME


def _comes_again(when: CronTriggerTimetable) -> bool:
    """Whether cron can read it: without seconds and years, so that it never ends."""
    try:
        _runs(when, 2)
    except CroniterError:
        return False
    return len(when.expression.split()) == _FIELDS


def _runs(when: CronTriggerTimetable, count: int) -> list[datetime]:
    return list(islice(croniter(when.expression, _FROM, ret_type=datetime), count))


def _texts(dag_id: str, given: Mapping[str, object], known: type) -> dict[str, str]:
    accepted = [name for name in _WANTED if name in known.__annotations__]
    texts = {}
    for name, value in given.items():
        if name not in accepted:
            raise _refused(f"{dag_id}(…)", name, f"only {', '.join(accepted)}")
        if not isinstance(value, str) or not value.strip():
            raise _refused(f"{dag_id}({name}=…)", value, _WANTED[name])
        texts[name] = value
    return texts


def _refused(where: str, found: object, wanted: str) -> ConfigError:
    return ConfigError(where, found, f"{wanted}. Correct it in this file, or leave it out")
