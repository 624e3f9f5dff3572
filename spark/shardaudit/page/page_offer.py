"""What "backfill this" offers: the form of the DAG, filled in, how much is missing, its price."""

from dataclasses import dataclass
from datetime import datetime

from shardaudit.backfill.rules.plan import ASKED_FOR, Range, price
from shardaudit.backfill.rules.planned import Price
from shardaudit.model.choices import Approval, BackfillMode, SinkFormat
from shardaudit.model.config.settings import Settings
from shardaudit.model.window import Window
from shardaudit.page.page_reading import Shown
from shardaudit.page.page_state import PageState
from shardaudit.store.audits import open_missing
from shardaudit.store.cell_grid import ALL_SHARDS


@dataclass(frozen=True, slots=True)
class Offer:
    """A backfill that can be asked for. `shard_ids`: none means all of the stream.

    `price`: of reading the window of one shard whole, at most; `open_ids`: missing messages of the
    selection that are open, the first of which is gone at `deadline`.
    """

    stream: str
    window: Window
    shard_ids: tuple[str, ...]
    shards: int
    open_ids: int
    deadline: datetime | None
    mode: str
    price: Price
    approval: str


def offer_of(settings: Settings, state: PageState, shown: Shown) -> Offer | None:
    """The offer for what is shown; None where nothing is."""
    names = [name for row in shown.found.rows for name in row.group.names]
    if not names:
        return None
    stream = settings.stream(state.stream)
    missing = open_missing(settings, state.stream, shards=state.shards)
    by_hand = Range(names[0], ASKED_FOR, shown.window, shown.window, ())
    default = BackfillMode.MERGE if stream.sink.format is SinkFormat.DELTA else BackfillMode.APPEND
    is_auto = stream.backfill.approve is Approval.AUTO
    return Offer(
        stream=state.stream,
        window=shown.window,
        shard_ids=() if state.shards == ALL_SHARDS else tuple(names),
        shards=len(names),
        open_ids=missing.ids,
        deadline=missing.deadline,
        mode=(stream.backfill.mode or default).value,
        price=price(by_hand, read_share=stream.backfill.read_share),
        approval="by policy, below its limit" if is_auto else "a person",
    )
