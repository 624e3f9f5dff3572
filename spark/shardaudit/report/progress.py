"""Which stage of a long run is at work: live at a terminal, log lines in a pipe."""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

log = logging.getLogger(__name__)


class Progress(Protocol):
    """What a job tells about itself: `with progress.stage("compare"): …`."""

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Marks the work of the block."""


class Silent:
    """Says nothing: the default of a job."""

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Marks the work of the block."""
        del name
        return nullcontext()


NO_PROGRESS = Silent()


class Logged:
    """One log line at the start of each stage; the log's times tell how long it took."""

    def __init__(self, total: int) -> None:
        self._numbers = _Numbers(total)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Marks the work of the block."""
        log.info("%s", self._numbers.next(name))
        yield


class Live:
    """A line that moves while a stage runs, and stays with its duration when it is done."""

    def __init__(self, console: Console, total: int) -> None:
        self._console, self._numbers = console, _Numbers(total)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Marks the work of the block."""
        columns = (SpinnerColumn(finished_text="✓"), TextColumn("{task.description}"))
        with Bar(*columns, TimeElapsedColumn(), console=self._console) as bar:
            task = bar.add_task(self._numbers.next(name), total=1)
            yield
            bar.advance(task)


class _Numbers:
    def __init__(self, total: int) -> None:
        self._done, self._total = 0, total

    def next(self, name: str) -> str:
        self._done += 1
        return f"{self._done}/{self._total} {name}"
