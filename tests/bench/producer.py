"""What the wrapper of boto3's Kinesis client costs a producer, and whether its log holds for a day.

`python -m tests.bench.producer [SECONDS]` puts records into a Kinesis stand-in in a process of its
own, with and without the wrapper in turn; weighs a process with it and one without; lets a log
live through a day of files and lines of health in so many seconds (144: a minute is 0.1 s), whose
disk takes nothing for a part of each hour, and counts what is in the files.
"""

import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any  # of boto3's requests and answers

from rich.console import Console
from rich.table import Table

from shardaudit.producer import traced
from shardaudit.simulate.kinesis_stream import endpoint_client
from shardaudit.simulate.stand_in_process import kinesis_stand_in
from tests.aws.streams import Stream
from tests.bench.producer_day import a_day, payload_records

A_CALL = 500  # records; PutRecords takes no more
CALLS = 20  # at once with, and without: the thread that writes has its share of both
PAIRS = 12
ON_ITS_WAY_S = 0.02  # a request and its answer, between a producer and Kinesis in its region
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
        clocks = {"wall": time.perf_counter, "processor": time.process_time}
        for name, has_fields in (("id and time in the payload", True), ("both added", False)):
            records = payload_records(A_CALL, has_fields=has_fields)
            for clock, read in clocks.items():
                costs.add_row(name, clock, *_pairs(client, folder, records, read))
        # The stand-in answers on the same machine: no request is on its way.
        client.meta.events.register("before-send.kinesis", _on_its_way)
        for name, has_fields in (("the same, in payload", True), ("the same, added", False)):
            records = payload_records(A_CALL, has_fields=has_fields)
            pairs = _pairs(client, folder, records, time.perf_counter)
            costs.add_row(f"{name}, {ON_ITS_WAY_S * 1000:.0f} ms on its way", "wall", *pairs)
        console.print(costs)
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
    client: Any, folder: str, records: list[dict[str, Any]], read: Callable[[], float]
) -> tuple[str, ...]:
    """Milliseconds of a call without and with the wrapper; how much more that is, pair by pair."""

    def taken(putting: Any) -> float:
        start = read()
        for _ in range(CALLS):
            putting.put_records(StreamName="events", Records=records)
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


def _weight(what: dict[str, str], folder: str) -> float:
    """The peak of a process' memory, KiB: the middle one of three."""
    command = [sys.executable, "-c", _WEIGHT.format(**what), str(WEIGHED), folder]
    runs = (subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(3))
    return statistics.median(int(run.stdout) for run in runs)


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # each file that is not written yet
    main(float(sys.argv[1]) if len(sys.argv) > 1 else DAY_SECONDS)
