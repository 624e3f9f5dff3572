"""What all that write a trace log offer: to flush it, to close it, to say what became of it."""

from types import TracebackType
from typing import Self

from shardaudit.producer.trace_log import LogStats, TraceLog


class LogHolder:
    """Holds a trace log, also as a `with` block that closes it."""

    def __init__(self, log: TraceLog) -> None:
        self._log = log

    def flush(self) -> bool:
        """Whether all that was traced before is in files; waits ten seconds."""
        return self._log.flush()

    def close(self) -> None:
        """Flushes and ends the log; what would be traced afterwards is counted as dropped."""
        self._log.close()

    @property
    def stats(self) -> LogStats:
        """What became of the traces so far."""
        return self._log.stats

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()
