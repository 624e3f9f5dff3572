"""What an audit is asked."""

from dataclasses import dataclass
from datetime import datetime

from shardaudit.model.audit_id import audit_id
from shardaudit.model.config.settings import Stream
from shardaudit.model.retention import Retention
from shardaudit.model.window import Window


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """What is audited: a stream's window, as of a time, with the retention that was in force.

    `late_of`: the audit with whose window it goes; None: it is asked for itself.
    `judged_over`: the time by whose totals shares are judged; None: the window.
    """

    name: str
    stream: Stream
    window: Window
    as_of: datetime
    retention: Retention
    late_of: str | None = None
    judged_over: Window | None = None

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
    def audit_id(self) -> str:
        """The same for the same request."""
        return audit_id(self.name, self.aligned, self.as_of, self.stream.digest())
