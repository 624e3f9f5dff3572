"""How long the warehouse keeps what nothing has to read any more."""

from datetime import timedelta

from shardaudit.model.config.fields import Duration
from shardaudit.model.config.parts import Frozen
from shardaudit.model.errors import ConfigError

# Beyond what an audit looks at and a stream keeps: the month of a loss budget, the thirty days that
# gates look back, the week of a patience. 400 days are more than the 366 and 365 of the longest.
BESIDE = timedelta(days=31)


class Keep(Frozen):
    """How old the rows of histories become; all other tables keep theirs for ever."""

    history: Duration = timedelta(days=400)

    def check(self, stream: str, *read: timedelta | None) -> None:
        """Returns when histories reach beyond the lengths of time that a stream still reads.

        Raises:
            ConfigError: they do not.
        """
        least = max(length for length in read if length is not None) + BESIDE
        if self.history < least:
            days = -(-least // timedelta(days=1))
            wanted = f"at least {days}d: 31 days more than the audit_window and the retention"
            raise ConfigError("keep.history", f"{self.history.days}d", f"{wanted} of {stream}")
