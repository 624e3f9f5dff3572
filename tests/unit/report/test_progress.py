import io
import logging

import pytest
from rich.console import Console

from shardaudit.report.progress import NO_PROGRESS, Live, Logged, Progress


def work(progress: Progress) -> None:
    for name in ("ingest", "compare"):
        with progress.stage(name):
            pass


def test_pipe_gets_one_line_per_stage(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    work(Logged(7))
    assert caplog.messages == ["1/7 ingest", "2/7 compare"]


def test_terminal_keeps_a_line_of_each_stage() -> None:
    screen = io.StringIO()
    work(Live(Console(file=screen, force_terminal=True, width=80), 7))
    assert "1/7 ingest" in screen.getvalue()
    assert "2/7 compare" in screen.getvalue()


def test_silent_progress_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    work(NO_PROGRESS)
    assert not caplog.messages
