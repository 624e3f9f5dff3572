"""How much of what a stream may lose in a month is lost already."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from shardaudit.model.rates import wilson_interval
from shardaudit.model.window import Window

_MORE_THAN_A_MONTH = timedelta(days=32)


@dataclass(frozen=True, slots=True)
class LossBudget:
    """A month of a stream, as of a time in it.

    `allowed`: the share of the month's messages that may be lost; `sent`, `lost`, `stuck`: messages
    that were acknowledged, but for what filters left out by design, that are lost, and that wait
    behind a shard that stands still, as far as audits looked; `unaudited`: how much of the time so
    far no audit looked at; `inconclusive`: how much was inconclusive on some shard; `is_sampled`:
    all of them are of a sample of the ids; `is_mixed`: of several samples, one after the other, of
    which no share can be told.

    What is to come, and what nobody looked at, counts as what is known.
    """

    allowed: float
    month: Window
    as_of: datetime
    sent: int
    lost: int
    stuck: int
    unaudited: timedelta
    inconclusive: timedelta
    is_sampled: bool = False
    is_mixed: bool = False

    @property
    def gone(self) -> float:
        """The share of the month that is over."""
        return (self.as_of - self.month.start) / (self.month.end - self.month.start)

    @property
    def used(self) -> float | None:
        """The share of the month's budget that is lost; None: `burn_rate` is."""
        return None if self.burn_rate is None else self.burn_rate * self.gone

    @property
    def used_between(self) -> tuple[float, float] | None:
        """The 95 % interval of `used` for all messages; None: it is exact, or not known."""
        if self.used is None or not self.is_sampled:
            return None
        least, most = wilson_interval(min(self.lost, self.sent), self.sent)
        return least / self.allowed * self.gone, most / self.allowed * self.gone

    @property
    def burn_rate(self) -> float | None:
        """The share used ÷ the share of the month gone; above 1 it does not last.

        None: nothing is known to be sent, or it is of several samples.
        """
        is_told = self.sent and not self.is_mixed
        return self.lost / (self.allowed * self.sent) if is_told else None

    @property
    def left(self) -> int | None:
        """How many more messages may be lost, at this month's volume; below 0: it is overspent."""
        if self.used is None:
            return None
        audited = (self.as_of - self.month.start - self.unaudited) / (
            self.month.end - self.month.start
        )
        return round(self.allowed * self.sent / audited * (1 - self.used))


def month_of(at: datetime) -> Window:
    """The calendar month in which a time, in UTC, lies."""
    start = at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return Window(start, (start + _MORE_THAN_A_MONTH).replace(day=1))
