"""A stream that is split while its consumer is hours behind: no child stands still before it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from shardaudit.ingest.rules.lineage import BEHIND_PARENT
from shardaudit.model.tables.audit_tables import CELLS
from shardaudit.store.warehouse import Warehouse
from tests.history import Question, SinkRow, Trace
from tests.spark.trial import Trial

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
BEHIND = NOW - 6 * HOUR  # from here on what is sent waits
SPLIT = NOW - 2 * HOUR
PARENTS = {"1-child": ["0-parent"], "2-child": ["0-parent"]}
Messages = list[tuple[Trace, SinkRow]]


def messages(
    shard: str, since: datetime, until: datetime, landed_at: Callable[[datetime], datetime]
) -> Messages:
    """One each 10 minutes."""
    found = []
    for n in range((until - since) // (10 * MINUTE)):
        at, name = since + n * 10 * MINUTE, f"{shard}/{since:%H}/{n}"
        number = str((at - NOW + 100 * HOUR) // MINUTE)
        trace = Trace(name, shard, number, at)
        found.append((trace, SinkRow(name, shard, number, at, landed_at(at))))
    return found


def test_children_wait_while_the_consumer_reads_their_parent_and_are_stuck_when_it_rests(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    trial = Trial(warehouse, tmp_path, Question(SPLIT - HOUR, NOW - HOUR, NOW))
    landed = messages("0-parent", NOW - 40 * HOUR, BEHIND, lambda at: at + MINUTE)
    landed += messages("0-parent", BEHIND, NOW - 4 * HOUR, lambda _: NOW - 2 * MINUTE)
    waiting = messages("0-parent", NOW - 4 * HOUR, SPLIT, lambda at: at)
    for child in PARENTS:
        waiting += messages(child, SPLIT, NOW, lambda at: at)
    trial.log([trace for trace, _ in landed + waiting])
    trial.land([row for _, row in landed])
    trial.ingest()
    trial.list_shards({"0-parent", *PARENTS}, at=NOW - HOUR, parents=PARENTS)
    behind = ("pending", f"{BEHIND_PARENT}0-parent")
    assert said(trial, NOW) == {"0-parent": ("pending", None), **dict.fromkeys(PARENTS, behind)}
    silent = ("silent", None)
    later = said(trial, NOW + HOUR)
    assert later == {"0-parent": ("stalled", None), **dict.fromkeys(PARENTS, silent)}
    # As of a stream made anew, of which a shard has that name, and no children.
    trial.list_shards({"0-parent"}, at=NOW - MINUTE, parents={"9-child": ["8-parent"]})
    assert said(trial, NOW) == {"0-parent": ("pending", None), **dict.fromkeys(PARENTS, silent)}


def said(trial: Trial, as_of: datetime) -> dict[str, tuple[str, str | None]]:
    """What an audit says of the cells to which something was sent: by shard, the same of all."""
    window = Question(SPLIT - HOUR, NOW - HOUR, as_of)
    audit_id = trial.audit(window).audit.audit_id
    cells = trial.warehouse.read(CELLS).where(f"audit_id = '{audit_id}' AND sent > 0")
    rows = cells.select("shard_id", "verdict", "reason").distinct().collect()
    assert len(rows) == len({row.shard_id for row in rows})
    return {row.shard_id: (row.verdict, row.reason) for row in rows}
