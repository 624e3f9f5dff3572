"""What the wrapper of boto3's Kinesis client costs a producer, and whether its log holds for a day.

`python -m tests.bench.producer [SECONDS]` puts records into a Kinesis stand-in in a process of its
own, with and without the wrapper in turn, and into a client that answers at once; weighs a process
with it and one without; lets a log live through a day of files and lines of health in so many
seconds (144: a minute is 0.1 s), whose disk takes nothing for a part of each hour, and counts what
is in the files.
"""

import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any  # of boto3's requests and answers

from rich.console import Console
from rich.table import Table

from shardaudit.producer import traced
from shardaudit.producer.message_fields import MessageFields
from shardaudit.producer.prepared_records import PutRecord
from shardaudit.simulate.kinesis_stream import endpoint_client
from shardaudit.simulate.stand_in_process import kinesis_stand_in
from tests.aws.streams import Stream
from tests.bench.producer_day import InstantKinesis, a_day, payload_records

A_CALL = 500  # records; PutRecords takes no more
CALLS = 20  # at once with, and without: the thread that writes has its share of both
PAIRS = 12
ON_ITS_WAY_S = 0.02  # a request and its answer, between a producer and Kinesis in its region
LEAST_OF = 20  # times as many calls
BOTH = ("message_id", "sent_at")
CASES: dict[str, tuple[tuple[str, ...], float]] = {
    "id and time in the payload": (BOTH, 1.0),
    "the time added": (("message_id",), 1.0),
    "the id added": (("sent_at",), 1.0),
    "both added": ((), 1.0),
    "in the payload, a sample of 10 %": (BOTH, 0.1),
    "both added, a sample of 10 %": ((), 0.1),
}
WEIGHED = 100_000  # records, as fast as can be: the queue gets full
DAY_SECONDS = 144.0
_WEIGHT = """
import sys
from pathlib import Path
from tests.bench.producer_day import InstantKinesis, payload_records
{imports}
client = InstantKinesis()
{wrapped}
for first in range(0, int(sys.argv[1]), 500):
    client.put_records(StreamName="events", Records=payload_records(500, first=first))
{closed}
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""
_PLAIN = {"imports": "", "wrapped": "", "closed": ""}
_TRACED = {
    "imports": "from shardaudit.producer import traced",
    "wrapped": "client = traced(client, sys.argv[2], producer_id='p')",
    "closed": "client.close()",
}


def main(seconds: float) -> None:
    """Prints what was seen, and the machine's load: on a busy one it says little."""
    console = Console()
    console.print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with kinesis_stand_in() as url, tempfile.TemporaryDirectory() as folder:
        client = endpoint_client(url)
        Stream(client, "events").make(8)
        costs = Table("put_records", "", "plain, ms", "traced, ms", "more", "of the pairs, half")
        held, bare = payload_records(A_CALL, fields=BOTH), payload_records(A_CALL, fields=())
        with_both, *_ = MessageFields().prepared(bare, "2026-11-24T12:00:00.000Z")
        puts: dict[str, tuple[Sequence[PutRecord], Sequence[PutRecord]]] = {
            "id and time in the payload": (held, held),
            "both added": (bare, bare),
            "both added, against payloads that have them": (with_both, bare),
        }
        clocks = {
            "wall": time.perf_counter,
            "the process": time.process_time,
            "the caller's thread": time.thread_time,
        }
        for name, records in puts.items():
            for clock, read in clocks.items():
                costs.add_row(name, clock, *_pairs(client, folder, records, read))
        # The stand-in answers on the same machine: no request is on its way.
        client.meta.events.register("before-send.kinesis", _on_its_way)
        for name, records in puts.items():
            pairs = _pairs(client, folder, records, time.perf_counter)
            costs.add_row(f"{name}; {ON_ITS_WAY_S * 1000:.0f} ms on its way", "wall", *pairs)
        console.print(costs)
        console.print(_processor(folder))
        more = _weight(_TRACED, folder) - _weight(_PLAIN, folder)
        console.print(f"memory: {more / 1024:.1f} MiB more at {WEIGHED:,} records")
    with tempfile.TemporaryDirectory() as folder:
        day = a_day(Path(folder) / "traces", seconds)
    table = Table("a day in", f"{seconds:g} s")
    for name, value in day.told().items():
        table.add_row(name, value)
    console.print(table)


def _on_its_way(**_: object) -> None:
    time.sleep(ON_ITS_WAY_S)


def _pairs(
    client: Any,
    folder: str,
    records: tuple[Sequence[PutRecord], Sequence[PutRecord]],
    read: Callable[[], float],
) -> tuple[str, ...]:
    """Milliseconds of a call without and with the wrapper; how much more that is, pair by pair.

    Input:
        records: what is put without it, and with it.
    """

    def taken(putting: Any) -> float:
        start = read()
        for _ in range(CALLS):
            putting.put_records(StreamName="events", Records=records[putting is producer])
        return (read() - start) * 1000 / CALLS

    with traced(client, folder, producer_id="bench") as producer:
        for each in (client, producer):
            taken(each)
        pairs = []
        for number in range(PAIRS):
            # In turn: what the machine does meanwhile comes to both.
            order = (client, producer) if number % 2 else (producer, client)
            one = {each is producer: taken(each) for each in order}
            pairs.append((one[False], one[True]))
    plain, with_it = (statistics.median(times) for times in zip(*pairs, strict=True))
    more = [traced_ms / plain_ms - 1 for plain_ms, traced_ms in pairs]
    low, middle, high = statistics.quantiles(more, n=4)
    return f"{plain:.1f}", f"{with_it:.1f}", f"{middle:+.1%}", f"{low:+.1%} to {high:+.1%}"


def _processor(folder: str) -> Table:
    """Processor time of a record: what the wrapper adds to a client that answers at once.

    The least of many calls, and all that a flush writes of each: another process adds, never takes.
    """
    # As in any process that has put something: malloc gives no memory back for the next to be new.
    bytes(2**22)
    table = Table("processor, µs a record", "the caller's thread", "the process", "bytes")
    for name, (fields, rate) in CASES.items():
        records, client = payload_records(A_CALL, fields=fields), InstantKinesis()
        with traced(client, folder, producer_id="bench", sample_rate=rate) as producer:
            plain, with_it = (
                [_clocks(each, records, ended) for _ in range(LEAST_OF)]
                for each, ended in ((client, bool), (producer, producer.flush))
            )
            more = [min(t[at] for t in with_it) - min(t[at] for t in plain) for at in (0, 1)]
            stats = producer.stats
        table.add_row(name, *(f"{each:.2f}" for each in more), f"{stats.bytes / stats.written:.0f}")
    return table


def _clocks(
    putting: Any, records: list[dict[str, Any]], ended: Callable[[], object]
) -> tuple[float, float]:
    """Microseconds of a record: of this thread, and of the process."""
    clocks = (time.thread_time, time.process_time)
    start = [read() for read in clocks]
    for _ in range(CALLS):
        putting.put_records(StreamName="events", Records=records)
    ended()
    thread, process = (read() - at for read, at in zip(clocks, start, strict=True))
    return thread * 1e6 / (CALLS * A_CALL), process * 1e6 / (CALLS * A_CALL)


def _weight(what: dict[str, str], folder: str) -> float:
    """The peak of a process' memory, KiB: the middle one of three."""
    command = [sys.executable, "-c", _WEIGHT.format(**what), str(WEIGHED), folder]
    runs = (subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(3))
    return statistics.median(int(run.stdout) for run in runs)


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # each file that is not written yet
    main(float(sys.argv[1]) if len(sys.argv) > 1 else DAY_SECONDS)
