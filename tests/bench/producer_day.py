"""A day of a trace log in minutes, with a disk that takes nothing for a part of each hour."""

import hashlib
import json
import resource
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any  # of boto3's requests and answers

from shardaudit.model.input_columns import PRODUCER
from shardaudit.producer.message_fields import MessageFields
from shardaudit.producer.packed_lines import Teller
from shardaudit.producer.trace_folder import DiskFolder
from shardaudit.producer.trace_log import LogLimits, LogStats, TraceLog
from shardaudit.producer.traced_kinesis import TracedKinesis
from tests.builders import unpacked_lines

HOURS, MINUTES = 24, 60
STOPPED = 10  # minutes of each hour
SIZE = 1000  # bytes of a payload
PACE = 20_000  # records a second
A_CALL = 500  # records
FULL_BYTES = 64  # no file of a log is that small
_TELLER = Teller("day", session="", location=PRODUCER, sample_rate=1.0)


@dataclass
class InstantKinesis:
    """Acknowledges all at once, and keeps their number alone."""

    acknowledged: int = 0

    def put_records(self, **request: Any) -> dict[str, Any]:
        """boto3's answer."""
        first, self.acknowledged = self.acknowledged, self.acknowledged + len(request["Records"])
        entries = [
            {"ShardId": "shardId-000000000000", "SequenceNumber": f"4965{number:052d}"}
            for number in range(first, self.acknowledged)
        ]
        return {"FailedRecordCount": 0, "Records": entries}


@dataclass(slots=True)
class Filed:
    """What the files of one session say. `is_dense`: no number is left out, none is there twice."""

    traces: int = 0
    gaps: int = 0
    files: int = 0
    is_dense: bool = True

    def add(self, line: dict[str, Any]) -> None:
        """Counts a line, which come in the order of their numbers."""
        if "health" in line:
            return
        self.is_dense &= line["session_seq"] == self.traces + self.gaps
        self.traces += "message_id" in line
        self.gaps += line.get("gap", 0)


@dataclass(slots=True)
class Day:
    """What became of a day. `rss_kib`: of the process, at the end of each hour."""

    acknowledged: int
    stats: LogStats
    filed: Filed
    most_queued: int
    rss_kib: list[int] = field(default_factory=list)

    @property
    def is_exact(self) -> bool:
        """Whether files and log count the same, and all that was acknowledged."""
        filed = self.filed
        same = (filed.traces, filed.gaps) == (self.stats.written, self.stats.dropped)
        return same and filed.is_dense and self.acknowledged == filed.traces + filed.gaps

    def told(self) -> dict[str, str]:
        """Its numbers, as a person reads them."""
        return {
            "records acknowledged": f"{self.acknowledged:,}",
            "traces in files": f"{self.filed.traces:,}",
            "dropped, by gaps in files": f"{self.filed.gaps:,}",
            "each record counted once": "yes" if self.is_exact else f"NO: {self.stats}",
            "files": f"{self.filed.files:,}",
            "most that waited": f"{self.most_queued:,}",
            "memory after hours 2, 12 and 24, MiB": ", ".join(
                f"{self.rss_kib[hour * len(self.rss_kib) // HOURS - 1] / 1024:.1f}"
                for hour in (2, 12, 24)
            ),
        }


def payload_records(
    count: int, *, first: int = 0, fields: Collection[str] = ("message_id", "sent_at")
) -> list[dict[str, Any]]:
    """Records of 1 KB of JSON, with an id of 32 digits and a time of their own, or one of them."""
    records = []
    for number in range(first, first + count):
        digits = hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest()
        both = {"message_id": digits, "sent_at": f"2026-11-24T12:00:00.{number % 1000:03d}Z"}
        payload = {name: both[name] for name in fields}
        text = json.dumps(payload | {"filler": ""})
        text = json.dumps(payload | {"filler": "x" * (SIZE - len(text))})
        records.append({"Data": text.encode(), "PartitionKey": str(number)})
    return records


def a_day(folder: Path, seconds: float) -> Day:
    """Puts records at a steady pace, with all that a log does in a day at its own time."""
    minute_s = seconds / (HOURS * MINUTES)
    limits = LogLimits(
        file_age_s=minute_s,
        health_every_s=minute_s,
        look_every_s=minute_s / 4,
        pause_s=minute_s / 2,
    )
    with stopped(folder):  # what this needs is made before the log begins
        kinesis = InstantKinesis()
    producer = TracedKinesis(
        kinesis, TraceLog(DiskFolder(str(folder)), _TELLER, limits), MessageFields(), 1.0
    )
    day = Day(0, producer.stats, Filed(), most_queued=0)
    begin = time.monotonic()
    for hour in range(HOURS):
        start = begin + hour * MINUTES * minute_s
        _put_until(producer, day, start + (MINUTES - STOPPED) * minute_s)
        with stopped(folder):
            _put_until(producer, day, start + MINUTES * minute_s)
        day.rss_kib.append(_rss_kib())
    producer.close()
    day.acknowledged, day.stats, day.filed = kinesis.acknowledged, producer.stats, filed(folder)
    return day


def _put_until(producer: TracedKinesis, day: Day, end: float) -> None:
    records = payload_records(A_CALL)
    while (now := time.monotonic()) < end:
        producer.put_records(StreamName="events", Records=records)
        day.most_queued = max(day.most_queued, producer.stats.queued)
        time.sleep(max(0.0, now + A_CALL / PACE - time.monotonic()))


@contextmanager
def stopped(folder: Path) -> Iterator[None]:
    """The folder is none: nothing can be written into it, whoever asks, root too."""
    inside, no_folder = (folder.with_name(f"{folder.name}.{name}") for name in ("in", "none"))
    if not folder.is_symlink():
        folder.mkdir(parents=True, exist_ok=True)
        folder.rename(inside)
        no_folder.touch()
    _lead(folder, no_folder)
    yield
    _lead(folder, inside)


def _lead(link: Path, to: Path) -> None:
    """Makes it a link to there, at once: the log writes meanwhile."""
    new = link.with_name(f"{link.name}.new")
    new.symlink_to(to)
    new.replace(link)


@contextmanager
def full() -> Iterator[None]:
    """Each file ends after a few bytes with an error of the system, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    heard = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # what would end the process
    resource.setrlimit(resource.RLIMIT_FSIZE, (FULL_BYTES, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, heard)


def filed(folder: Path) -> Filed:
    """What is in the files of a folder, in which one session wrote."""
    told = Filed()
    for file in sorted(folder.glob("[!.]*")):  # they are numbered
        told.files += 1
        for line in unpacked_lines(file.read_bytes()):
            told.add(json.loads(line))
    return told


def _rss_kib() -> int:
    [line] = [
        line for line in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in line
    ]
    return int(line.split()[1])
