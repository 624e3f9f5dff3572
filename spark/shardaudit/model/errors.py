"""The error tree: what a later try may cure, and what it will not.

Commands end with the exit codes of these; the DAG retries on `RETRY` alone.
"""

import json

from shardaudit.model.exit_code import ExitCode
from shardaudit.model.input_columns import OPTIONAL


class ShardauditError(Exception):
    """Every error that we raise on purpose."""

    exit_code = ExitCode.FAILED


class FinalError(ShardauditError):
    """Trying again will not help."""


class RetryableError(ShardauditError):
    """A later try may work."""

    exit_code = ExitCode.RETRY


class ConfigError(FinalError, ValueError):
    """A configuration or an argument that cannot be used: where, what was found, what would do."""

    exit_code = ExitCode.USAGE

    def __init__(self, where: str, found: object, wanted: str) -> None:
        super().__init__(f"{where}: found {found!r}, wanted {wanted}")
        self.where, self.found, self.wanted = where, found, wanted


class WarehouseBusyError(RetryableError, BlockingIOError):
    """Another run holds the warehouse."""

    def __init__(self, warehouse: str, owner: str, since: str) -> None:
        super().__init__(
            f"warehouse {warehouse} is held by {owner} since {since}: "
            "wait for that run to end, or stop it; a dead run is taken over by itself"
        )
        self.owner, self.since = owner, since


class LockLostError(RetryableError, BlockingIOError):
    """Somebody took the warehouse over while we held it: nothing more may be written."""

    def __init__(self, warehouse: str, owner: str) -> None:
        super().__init__(
            f"the lock on warehouse {warehouse} was taken over by {owner}: "
            "this run was silent for too long and stops before it writes anything else"
        )


class SinkSchemaError(FinalError, KeyError):
    """A column of the sink that the audit needs is not there. `stream`: None, not known yet."""

    def __init__(
        self,
        *,
        column: str,
        mapped_to: str,
        version: str,
        found: list[str],
        stream: str | None = None,
    ) -> None:
        self._missed = {"column": column, "mapped_to": mapped_to, "version": version}
        self._found = found
        under = f"[streams.{json.dumps(stream)}.sink]" if stream else "the stream's sink"
        self.text = (
            (f"stream {stream}: " if stream else "")
            + f"sink column {mapped_to!r} (for {column}) is not in {version}; found {found}: "
            f'set columns = {{ {column} = "…" }} under {under}'
        )
        if column in OPTIONAL:
            self.text += f', its new name; or without = ["{column}"], if the sink has it no more'
        super().__init__(self.text)

    def of_stream(self, stream: str) -> "SinkSchemaError":
        """The same, of a stream: whose sink it is the rules do not know."""
        return SinkSchemaError(**self._missed, found=self._found, stream=stream)

    def __str__(self) -> str:
        return self.text  # KeyError would quote it


class WarehouseVersionError(ConfigError):
    """A table of the warehouse was written by another version of shardaudit."""

    def __init__(self, *, table: str, found: str, oldest: int, wanted: int) -> None:
        is_older = found.isdecimal() and oldest <= int(found) < wanted
        cure = (
            "run `shardaudit migrate`, which keeps what is in it"
            if is_older
            else "install the version of shardaudit that wrote it, or a later one that knows it"
        )
        # Without the path: whoever may see the page need not know it.
        super().__init__(
            f"table {table} of the warehouse", f"version {found}", f"version {wanted}: {cure}"
        )


class InvariantError(FinalError, AssertionError):
    """The numbers of an audit do not add up: nothing of it was published."""

    def __init__(self, audit_id: str, broken: list[str]) -> None:
        reasons = "; ".join(broken)
        super().__init__(f"audit {audit_id} is rejected, its numbers do not add up: {reasons}")
        self.broken = broken


class GateError(FinalError, AssertionError):
    """Gates are shut: nothing was published, the last good verdict stays."""

    def __init__(self, audit_id: str, broken: list[str]) -> None:
        super().__init__(
            f"audit {audit_id} is rejected, nothing of it is published: {' | '.join(broken)}"
        )
        self.broken = broken


_TOLD = 10  # differences that an error names; the rest is of the same kind


class SelfCheckError(FinalError, AssertionError):
    """The audit did not find what it had planted itself: its verdict is worth nothing."""

    def __init__(self, audit_id: str, wrong: list[str]) -> None:
        told = "; ".join(wrong[:_TOLD])
        more = f"; and {len(wrong) - _TOLD} more" if len(wrong) > _TOLD else ""
        super().__init__(
            f"audit {audit_id} is rejected: it did not find exactly what it planted itself. "
            f"This is a defect of shardaudit: please report it. {told}{more}"
        )
        self.wrong = wrong
