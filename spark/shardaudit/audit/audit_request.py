"""What an audit is asked."""

from dataclasses import dataclass, replace
from datetime import datetime

from shardaudit.model.audit_id import audit_id
from shardaudit.model.config.eras import CellShape, Eras
from shardaudit.model.config.settings import Stream
from shardaudit.model.retention import Retention
from shardaudit.model.window import Window


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """What is audited: a stream's window, as of a time, with the retention that was in force.

    `late_of`: the audit with whose window it goes; None: it is asked for itself.
    `judged_over`: the time by whose totals shares are judged; None: the window.
    `eras`: how the stream's ids are put into cells; None: as the configuration says, always.
    `known_as`: the id that it has for those who asked; None: that of the request as it is.
    `clock`: by which it runs; None: `as_of`.
    """

    name: str
    stream: Stream
    window: Window
    as_of: datetime
    retention: Retention
    late_of: str | None = None
    judged_over: Window | None = None
    eras: Eras | None = None
    known_as: str | None = None
    clock: datetime | None = None

    @property
    def aligned(self) -> Window:
        """The window in whole buckets."""
        return self.window.aligned(self.stream.bucket)

    def is_to_come(self, now: datetime) -> bool:
        """Whether it is as of a later time: minutes that are still to come are empty, and settled.

        Within the settle grace none is settled: a clock that is a bit ahead does no harm.
        """
        return self.as_of - now > self.stream.settle_grace

    @property
    def over_by(self) -> datetime:
        """By when a deadline must be over for a message to be given up: none that is to come is.

        Who typed the local time as UTC would give up what is still there, and what a plan brings.
        """
        is_to_come = self.clock is not None and self.is_to_come(self.clock)
        return self.clock if self.clock is not None and is_to_come else self.as_of

    @property
    def audit_id(self) -> str:
        """The same for the same request."""
        named = audit_id(self.name, self.aligned, self.as_of, self.stream.digest())
        return self.known_as or named

    @property
    def cells(self) -> Eras:
        """How the stream's ids are put into cells, those of other times, too."""
        return self.eras or Eras(self.stream.cell_shape)

    def by_era(self, eras: Eras) -> "list[AuditRequest]":
        """Requests of one era each, in order, that are this one together.

        Each has the bucket and the sample rate with which the ledger of its window was filled. The
        last is known by this one's id, as whoever planned it knows no ledger.
        """
        if not eras.later and eras.first == self.stream.cell_shape:
            return [replace(self, eras=eras)]
        parts = [self._part(window, shape, eras) for window, shape in eras.parts(self.window)]
        return [*parts[:-1], replace(parts[-1], known_as=self.audit_id)]

    def _part(self, window: Window, shape: CellShape, eras: Eras) -> "AuditRequest":
        said = {"bucket": shape.bucket, "sample_rate": shape.sample_rate}
        own = eras.span_of(window.start)
        return replace(
            self,
            window=window,
            stream=self.stream.model_copy(update=said),
            judged_over=self.judged_over and self.judged_over.common(own),
            eras=eras,
        )
