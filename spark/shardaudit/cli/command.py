"""What a command is to `main`: a module with `EXAMPLES`, `add_arguments` and `run`."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rich.console import RenderableType

from shardaudit.model.choices import EngineName
from shardaudit.model.config.settings import Settings, load_settings
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
    """What `main` lays out for a command. `progress` wants the number of stages.

    `engine`: asked for in the place of the configuration's.
    """

    config: Path
    progress: Callable[[int], Progress]
    engine: str | None = None

    def settings(self) -> Settings:
        """The configuration, read and checked, with the engine that was asked for.

        Raises:
            ConfigError: it cannot be used, or there is no such engine.
        """
        return load_settings(self.config).with_engine(self.engine)

    def repair_settings(self) -> Settings:
        """The same for what writes into a user's sink: always by Apache Spark, Delta's own writer.

        Raises:
            ConfigError: as `settings`.
        """
        return self.settings().with_engine(EngineName.SPARK)


class Command(Protocol):
    """A command's module."""

    EXAMPLES: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declares the command's own arguments."""

    def run(self, arguments: argparse.Namespace, desk: Desk) -> Reply:
        """Does it."""
