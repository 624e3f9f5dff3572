"""A night on AWS: audit, watch, plan, repair, audit; each command again until it ends.

A schedule is a seed: what fails at which request, and which commands are killed, come of it.
"""

import json
import logging
import os
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any  # of rows

from deltalake import DeltaTable

from shardaudit.model.config.parts import ENGINE
from shardaudit.model.exit_code import ExitCode
from shardaudit.simulate.written_files import Places, configuration
from shardaudit.store.lock import Holder
from shardaudit.store.lock_files import FOLDER
from tests.conftest import ONE_CORE, SPARK_KEYS
from tests.engines.commands import reaching
from tests.faults.forks import Forks
from tests.faults.stormy_proxy import Weather, stormy
from tests.faults.world import SCENARIO, World

log = logging.getLogger(__name__)

# A command ends within so many seconds, and in so many comes to a request or says a line.
LIMIT_S, STILL_S = 600, 180
STORMY_TRIES = 3
# Of kills, by chance: before a request or before its answer, but some by the clock.
_KILLED, _BY_THE_CLOCK, _OUTAGE, _EXPIRED = 0.5, 0.2, 0.2, 0.15
_REFUSED = re.compile(r"ExpiredToken|is refused: ")
_WAITS = re.compile(r"waits for .* which holds|is held by")
_AS_OF = ["--as-of", SCENARIO.as_of.isoformat()]
_OF_STREAM = ["--stream", SCENARIO.stream]
_WINDOW = [
    *("--from", SCENARIO.window.start.isoformat()),
    *("--to", SCENARIO.window.end.isoformat()),
]
EMBEDDED = "--engine=embedded"
AUDIT = [EMBEDDED, "audit", *_OF_STREAM, *_WINDOW, *_AS_OF]
WATCH = [EMBEDDED, "watch", *_OF_STREAM, *_AS_OF]
PLAN = [EMBEDDED, "backfill", "plan", *_OF_STREAM, *_AS_OF, "--json"]


@dataclass(frozen=True, slots=True)
class Length:
    """About how many requests a command has without faults, and how many seconds on two cores."""

    requests: int
    seconds: float


SMALL, LONG, OF_SPARK = Length(250, 4), Length(700, 10), Length(650, 40)


@dataclass
class Night:
    """A lake in a bucket of its own, and commands in the weather of a seed.

    `ends`: (command, exit code or "killed") -> how often; `story`: how each of them ended, and
    what those said that left 75.
    """

    forks: Forks
    bucket: Path
    config: Path
    environment: dict[str, str]
    weather: Weather
    share: float
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    story: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._draw = random.Random(f"kills {self.weather.seed}")  # noqa: S311 - to be repeated

    def passes(self, *, is_repaired: bool) -> None:
        """All commands of the night, each until it is done."""
        self.done(AUDIT, LONG)
        self.done(WATCH, SMALL)
        plan_id = json.loads(self.done(PLAN, SMALL))["plan_id"]
        if is_repaired:
            self._repaired(plan_id)
        self.done(AUDIT, LONG)

    def _repaired(self, plan_id: str) -> None:
        """By one command or, as Airflow does it, by two: the proof needs no Apache Spark."""
        of_plan, approved = ["--plan", plan_id, *_AS_OF], ["--approve-as", "ann"]
        if self._draw.random() < 0.25:
            self.done(["backfill", "run", *of_plan, *approved], OF_SPARK)
        else:
            self.done(["backfill", "replay", *of_plan, *approved], OF_SPARK)
            self.done([EMBEDDED, "backfill", "verify", *of_plan], LONG)

    def done(self, words: list[str], length: Length) -> str:
        """What the command printed when it ended well at last: without a fault at the first try."""
        for nth in range(STORMY_TRIES):
            if self.share > 0 or nth == 0:
                printed = self._tried(words, self._storm(length))
                if printed is not None:
                    return printed
        self.weather.calm()
        printed = self._tried(words, None)
        assert printed is not None, f"{words}: not done without a fault: {self.ends}"
        return printed

    def _storm(self, length: Length) -> float | None:
        """Sets the weather of a try; in how many seconds it is killed, if by the clock."""
        self.weather.calm()
        if self.share == 0:
            return None
        self.weather.share = self.share
        draw = self._draw
        if draw.random() < _OUTAGE:
            first = draw.randint(1, length.requests)
            self.weather.outage = range(first, first + draw.randint(2, 60))
        if draw.random() < _EXPIRED:
            self.weather.expired_at = draw.randint(1, length.requests)
        if draw.random() >= _KILLED:
            return None
        if draw.random() < _BY_THE_CLOCK:
            return draw.uniform(0.1, length.seconds)
        self.weather.kill_at = draw.randint(1, length.requests)
        return None

    def _tried(self, words: list[str], kill_after: float | None) -> str | None:
        name = " ".join(word for word in words[:3] if not word.startswith("-"))
        said = self.config.with_name("said")
        began = time.monotonic()
        forks, line = self.forks, ["--config", str(self.config), *words]
        with self.weather.at_work(forks.start(line, self.environment, said=said)) as pid:
            code = forks.ended(kill_after) if kill_after else self._ended_in_time(said)
            if code is None:
                os.killpg(pid, signal.SIGKILL)  # the JVM too
                code = forks.ended(STILL_S)
                assert kill_after is not None, f"{name}: stands still\n{_end_of(said)}"
        is_killed = code == -signal.SIGKILL
        self.ends[name, "killed" if is_killed else str(code)] += 1
        seconds, asked = time.monotonic() - began, self.weather.requests
        self._tells(f"{name}: {code} after {seconds:.1f} s and {asked} requests")
        if not is_killed:
            # Nobody else is at work: who is waited for is dead, or the command itself.
            assert not _WAITS.search(_end_of(said)), _end_of(said)
        if code == ExitCode.DONE:
            return said.with_suffix(".out").read_text()
        if not is_killed:
            refused = self.weather.expired_at is not None and _REFUSED.search(_end_of(said))
            wanted = ExitCode.FAILED if refused else ExitCode.RETRY
            assert code == wanted, f"{code}: {_end_of(said)}"
            assert "Traceback" not in _end_of(said), _end_of(said)
            self._tells(f"{name} gave up: {_end_of(said, 400)}")
        return None

    def _tells(self, line: str) -> None:
        self.story.append(line)
        log.info("seed %d, share %s: %s", self.weather.seed, self.share, line)

    def _ended_in_time(self, said: Path) -> int | None:
        """The exit code; None: it goes on for too long, or does nothing for too long.

        A slow machine is no fault of it: what it does is counted by requests and lines.
        """
        began, moved, seen = time.monotonic(), time.monotonic(), (0, 0)
        while (code := self.forks.ended(1)) is None:
            lines = said.with_suffix(".err")
            done = (self.weather.requests, lines.stat().st_size if lines.exists() else 0)
            if done != seen:
                moved, seen = time.monotonic(), done
            if time.monotonic() - min(moved, began + LIMIT_S - STILL_S) > STILL_S:
                return None
        return code

    def held_by_the_dead(self) -> list[str]:
        """The locks of runs that ended without giving them back, whom the next would wait for."""
        newest = {
            folder: max(folder.glob("*.json"), default=None)
            for folder in (self.bucket / "warehouse" / FOLDER, *self._named_locks())
        }
        holders = [Holder(**json.loads(file.read_text())) for file in newest.values() if file]
        return [str(one) for one in holders if not (one.released or one.is_gone())]

    def _named_locks(self) -> list[Path]:
        folder = self.bucket / "warehouse" / FOLDER
        return [path for path in folder.iterdir() if path.is_dir()]

    def landed(self) -> Counter[object]:
        """How often each message stands in the sink."""
        table = DeltaTable(str(self.bucket / "sink")).to_pyarrow_table()
        return Counter(table["message_id"].to_pylist())

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table of the warehouse; none where it was never written."""
        place = str(self.bucket / "warehouse" / name)
        if not DeltaTable.is_deltatable(place):
            return []
        rows: list[dict[str, Any]] = DeltaTable(place).to_pyarrow_table().to_pylist()
        return rows


def _end_of(said: Path, characters: int = 3000) -> str:
    return said.with_suffix(".err").read_text(errors="replace")[-characters:]


@contextmanager
def night(world: World, folder: Path, *, seed: int, share: float) -> Iterator[Night]:
    """A copy of the lake, and what passes between it and the commands.

    Input:
        folder: for what the commands are told and say; share: of the requests of which one fails.
    """
    weather = Weather(seed)
    folder.mkdir()
    with (
        world.forks() as forks,
        world.bucket() as bucket,
        stormy(world.kinesis_url, weather) as kinesis,
        stormy(world.dynamodb_url, weather) as dynamodb,
        stormy(world.s3.url, weather) as s3,
    ):
        root = f"s3a://{bucket.name}"
        places = Places(
            *(f"{root}/warehouse", f"{root}/traces", "json", f"{root}/sink", "delta"),
            *(kinesis, s3),
        )
        config = folder / "shardaudit.toml"
        config.write_text(
            configuration(SCENARIO, places).replace(
                "endpoints = {", f'endpoints = {{ dynamodb = "{dynamodb}",'
            )
            + f"[streams.{SCENARIO.stream}.positions]\nsource = 'kcl'\ntable = 'consumer'\n"
            + f"[spark]\n{SPARK_KEYS}"
        )
        environment = reaching(world.s3) | dict([ONE_CORE])
        environment.pop(ENGINE, None)  # each command names its own
        yield Night(forks, bucket, config, environment, weather, share)
