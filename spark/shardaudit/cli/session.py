"""The warehouse as a command needs it: locked for this run alone, with an engine."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from shardaudit.adapters.engine.door import started, works_here
from shardaudit.adapters.engine.engine_errors import SparkInterruptedError, spark_errors
from shardaudit.adapters.lake.broken_tables import broken_warehouse, is_of_gone_files
from shardaudit.adapters.pulse import Pulse
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import LockLostError
from shardaudit.model.tables.all_tables import OF_LEDGER, OF_WATCH
from shardaudit.report.progress import Progress
from shardaudit.store.lock import Lock, warehouse_lock
from shardaudit.store.lock_files import A_WATCH, AN_AUDIT, WATCH
from shardaudit.store.migrations import tables_of_places
from shardaudit.store.warehouse import Warehouse


@dataclass(slots=True)
class WriteLock:
    """The lock on a warehouse, taken for one stretch of writes after the other.

    `of_work`: the lock on what the run does, without which it must not write, either.
    """

    settings: Settings
    owner: str
    of_work: Lock | None = None
    _held: Lock | None = None

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Holds the warehouse for the block, once whoever has it gave it back.

        Raises:
            WarehouseBusyError: nobody gave it back within an hour.
        """
        pulse = _pulse(self.settings)
        with warehouse_lock(self.settings, owner=self.owner, timeout=AN_AUDIT, pulse=pulse) as held:
            self._held = held
            try:
                yield
            finally:
                self._held = None

    def check(self) -> None:
        """Returns while it holds the warehouse.

        Raises:
            LockLostError: it is not held, or not any more; or the run's work is another one's.
        """
        if self.of_work is not None:
            self.of_work.check()
        if self._held is None:
            raise LockLostError(self.settings.warehouse, "nobody: this run does not write now")
        self._held.check()


@contextmanager
def engine_errors(settings: Settings) -> Iterator[None]:
    """`spark_errors`; what no later try will read of the warehouse is told as such.

    Raises:
        BrokenTableError: a table lacks a file.
    """
    try:
        with spark_errors():
            yield
    except SparkInterruptedError as error:
        if not is_of_gone_files(error.__cause__):
            raise
        tables = (*OF_LEDGER, *OF_WATCH, *tables_of_places(settings))
        places = [f"{settings.warehouse}/{table.name}" for table in tables]
        broken = broken_warehouse(places, settings.aws, error)
        if broken is None:
            raise
        raise broken from error


@contextmanager
def long_session(
    settings: Settings, *, owner: str, progress: Progress, of_work: Lock | None
) -> Iterator[tuple[Warehouse, WriteLock]]:
    """The warehouse for a run of hours: to be read at any time, to be written under the lock.

    Raises:
        SparkFailedError: Spark failed in the block.
        SparkInterruptedError: the same, but a later try may work.
    """
    lock = WriteLock(settings, owner, of_work)
    with engine_errors(settings), ExitStack() as stack:
        yield _warehouse(stack, settings, owner, progress, check=lock.check), lock


@contextmanager
def session(
    settings: Settings, *, owner: str, progress: Progress, name: str | None = None
) -> Iterator[Warehouse]:
    """The warehouse, held against other runs; the lock comes first, before an engine.

    Input:
        name: of the lock that is held instead of the warehouse's own.

    Raises:
        WarehouseBusyError: nobody gave it back within an hour, the watch's within five minutes.
        SparkFailedError: Spark failed in the block.
        SparkInterruptedError: the same, but a later try may work.
    """
    timeout, pulse = A_WATCH if name == WATCH else AN_AUDIT, _pulse(settings)
    with (
        warehouse_lock(settings, owner=owner, name=name, timeout=timeout, pulse=pulse) as held,
        engine_errors(settings),
        ExitStack() as stack,
    ):
        yield _warehouse(stack, settings, owner, progress, check=held.check)


def _pulse(settings: Settings) -> Pulse | None:
    """None where others work, of whom this machine sees nothing."""
    return Pulse() if works_here(settings) else None


def _warehouse(
    stack: ExitStack,
    settings: Settings,
    owner: str,
    progress: Progress,
    *,
    check: Callable[[], None],
) -> Warehouse:
    with progress.stage("start the engine"):
        engine = stack.enter_context(started(settings, app=f"shardaudit {owner}"))
    return Warehouse(
        engine.session, settings.warehouse, aws=settings.aws, check=check, engine=engine.version
    )
