"""A night on S3 and Kinesis: audit, watch, plan, repair, audit; each command again until it ends.

A schedule is a seed: what fails and when, and which commands are killed, come of it.
"""

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any  # of rows

from deltalake import DeltaTable

from shardaudit.model.config.parts import ENGINE
from shardaudit.model.errors import ExitCode
from shardaudit.simulate.job import Endpoints, simulate_stream
from shardaudit.simulate.output import BUCKET
from shardaudit.simulate.s3proxy import S3Endpoint, s3_proxy
from shardaudit.simulate.scenario import Scenario
from shardaudit.simulate.stand_in_process import StandInControl, kinesis_stand_in
from shardaudit.simulate.written_files import Places, configuration
from tests.conftest import SPARK_KEYS
from tests.engines.commands import reaching
from tests.faults.stormy_proxy import Weather, stormy
from tests.spark.commands import command

PLANTED = {"lost": 5, "replay": 3}
SCENARIO = Scenario(
    stream="events",
    seed=5,
    messages=600,
    shards=2,
    start=datetime(2026, 11, 1, tzinfo=UTC),
    hours=24,
    faults=PLANTED,
)
_ROOT = f"s3a://{BUCKET}"
LIMIT_S = 180  # no command makes no progress for longer
STORMY_TRIES, TRIES = 6, 12
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


@dataclass
class Night:
    """A lake in a folder that is a bucket, its stream, and commands in the weather of a seed.

    `ends`: (command, exit code or "killed") -> how often; `gave_up`: what those said that left 75.
    """

    folder: Path
    environment: dict[str, str]
    weather: Weather
    ends: Counter[tuple[str, str]]
    share: float
    gave_up: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._draw = random.Random(f"kills {self.weather.seed}")  # noqa: S311 - to be repeated

    def passes(self, *, is_repaired: bool) -> None:
        """All commands of the night, each until it is done."""
        for words in (AUDIT, WATCH):
            self.done(words)
        plan_id = json.loads(self.done(PLAN))["plan_id"]
        if is_repaired:
            run = ["backfill", "run", "--plan", plan_id, "--approve-as", "ann"]
            self.done([*run, *_AS_OF], takes=40)
        self.done(AUDIT)

    def done(self, words: list[str], *, takes: float = 8) -> str:
        """What the command printed when it ended well at last.

        Input:
            takes: about how many seconds, to kill it in.
        """
        for nth in range(TRIES):
            is_stormy = self.share > 0 and nth < STORMY_TRIES
            self._turn(is_stormy=is_stormy)
            kill_after = self._draw.uniform(0.3, takes) if is_stormy else None
            printed = self._tried(words, None if self._draw.random() < 0.5 else kill_after)
            if printed is not None:
                return printed
        raise AssertionError(f"{words}: not done by {TRIES} tries: {self.ends}")

    def _turn(self, *, is_stormy: bool) -> None:
        self.weather.calm()
        if is_stormy:
            self.weather.share = self.share
            if self._draw.random() < 0.2:
                self.weather.outage = time.monotonic() + self._draw.uniform(1, 20)

    def _tried(self, words: list[str], kill_after: float | None) -> str | None:
        name = " ".join(word for word in words[:3] if not word.startswith("-"))
        process = subprocess.Popen(
            command(self.folder, words),
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=kill_after or LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # the JVM too
            out, err = process.communicate()
            assert kill_after is not None, f"{name}: over {LIMIT_S} s\n{err[-3000:]}"
            self.ends[name, "killed"] += 1
            return None
        self.ends[name, str(process.returncode)] += 1
        if process.returncode == ExitCode.DONE:
            return out
        assert process.returncode == ExitCode.RETRY, f"{process.returncode}: {err[-3000:]}"
        assert "Traceback" not in err, err[-3000:]
        self.gave_up.append(f"{name}: {err[-400:]}")
        return None

    def landed(self) -> Counter[object]:
        """How often each message stands in the sink."""
        table = DeltaTable(str(self.folder / "s3" / BUCKET / "sink")).to_pyarrow_table()
        return Counter(table["message_id"].to_pylist())

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table of the warehouse; none where it was never written."""
        place = str(self.folder / "s3" / BUCKET / "warehouse" / name)
        if not DeltaTable.is_deltatable(place):
            return []
        rows: list[dict[str, Any]] = DeltaTable(place).to_pyarrow_table().to_pylist()
        return rows


@contextmanager
def night(folder: Path, *, seed: int, share: float) -> Iterator[Night]:
    """A lake, and what passes between it and the commands.

    Input:
        share: of the requests of which one fails.
    """
    weather = Weather(seed)
    with (
        kinesis_stand_in() as url,
        simulated(folder, url) as endpoint,
        stormy(url, weather) as kinesis,
        stormy(endpoint.url, weather) as s3,
    ):
        places = Places(
            *(f"{_ROOT}/warehouse", f"{_ROOT}/traces", "json", f"{_ROOT}/sink", "delta"),
            *(kinesis, s3),
        )
        config = "\n".join([configuration(SCENARIO, places), "[spark]", SPARK_KEYS])
        (folder / "shardaudit.toml").write_text(config)
        environment = reaching(endpoint)
        environment.pop(ENGINE, None)  # each command names its own
        yield Night(folder, environment, weather, Counter(), share)


@contextmanager
def simulated(folder: Path, kinesis_url: str) -> Iterator[S3Endpoint]:
    """The stream and its lake; S3 serves it."""
    simulate_stream(SCENARIO, folder, endpoints=Endpoints(kinesis_url, s3=True))
    # Or the first messages would expire meanwhile.
    StandInControl(kinesis_url).hold(SCENARIO.as_of)
    with s3_proxy(folder / "s3") as endpoint:
        yield endpoint
