"""What a command is to `main`: a module with `EXAMPLES`, `add_arguments` and `run`."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rich.console import RenderableType

from shardaudit.model.config import Settings, load_settings
from shardaudit.model.errors import ExitCode
from shardaudit.report.progress import Progress


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command says at its end: the document for `--json`, the view for people."""

    document: object
    view: RenderableType
    exit_code: ExitCode = ExitCode.DONE


@dataclass(frozen=True, slots=True)
class Desk:
    """What `main` lays out for a command. `progress` wants the number of stages."""

    config: Path
    progress: Callable[[int], Progress]

    def settings(self) -> Settings:
        """The configuration, read and checked."""
        return load_settings(self.config)


class Command(Protocol):
    """A command's module."""

    EXAMPLES: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declares the command's own arguments."""

    def run(self, arguments: argparse.Namespace, desk: Desk) -> Reply:
        """Does it."""
