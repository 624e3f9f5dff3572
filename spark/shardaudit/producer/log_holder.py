"""What all that write a trace log have in common: checked arguments, and how a log is held."""

import re
from collections.abc import Mapping
from inspect import iscoroutinefunction
from types import TracebackType
from typing import Self

from shardaudit.model.errors import ConfigError
from shardaudit.model.sampling import LEAST_RATE
from shardaudit.producer.message_fields import is_utf8
from shardaudit.producer.trace_log import LogStats, TraceLog

_PLACE = re.compile(r"s3a?://[^/].*|file://.+|(?!.*://).+", re.DOTALL)  # no folder `./gs:/bucket`


def check_arguments(
    call: str,
    *,
    texts: Mapping[str, object],
    sources: Mapping[str, object],
    sample_rate: object,
) -> None:
    """Refuses what no log can come of, while a person looks on: nothing fails afterwards.

    Input:
        call: the function, as the error names it.
        texts, sources: arguments by their names; `to` is where the log goes, and sources say where
            an id or a time is.
        sample_rate: as a fraction.

    Raises:
        ConfigError: an argument cannot be used.
    """
    for name, value in texts.items():
        if not isinstance(value, str) or not value:
            raise ConfigError(f"{call}: {name}", value, "a text")
        if name == "to" and not _PLACE.fullmatch(value):
            raise ConfigError(f"{call}: to", value, "a folder on disk, or s3://BUCKET/…")
        if name != "to" and not is_utf8(value):  # as of a host whose name is no UTF-8
            raise ConfigError(f"{call}: {name}", value, "a text without half of a surrogate pair")
    for name, source in sources.items():
        if not (source is None or callable(source) or (isinstance(source, str) and source)):
            raise ConfigError(f"{call}: {name}", source, "a path in the payload, or a function")
    share = sample_rate if isinstance(sample_rate, int | float) else 0
    if isinstance(sample_rate, bool) or not LEAST_RATE <= share <= 1:
        wanted = f"a share, at least {LEAST_RATE:f}, at most 1"
        raise ConfigError(f"{call}: sample_rate", sample_rate, wanted)


def check_clients(call: str, clients: Mapping[str, object]) -> None:
    """Refuses those of aiobotocore: what they answer is nothing yet, and looks like success.

    Raises:
        ConfigError: a client's calls are to be awaited.
    """
    for name, client in clients.items():
        if iscoroutinefunction(getattr(client, "_make_api_call", None)):
            wanted = "a client of boto3, whose calls are not awaited"
            raise ConfigError(f"{call}: {name}", type(client).__name__, wanted)


class LogHolder:
    """Holds a trace log, also as a `with` block that closes it."""

    def __init__(self, log: TraceLog) -> None:
        self._log = log

    def flush(self, timeout_s: float | None = None) -> bool:
        """Whether all that was traced before is in files; waits so long at most, or ten seconds."""
        return self._log.flush(timeout_s)

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
