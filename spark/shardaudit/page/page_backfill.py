"""What "backfill this" offers: the form of the DAG `backfill`, filled in, and what it costs."""

from dataclasses import dataclass
from datetime import datetime

from shardaudit.backfill.rules.planned import Price
from shardaudit.model.window import Window


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
