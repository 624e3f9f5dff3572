"""The page's answers over 1,800 shards × 7 days × 5 minutes: seconds, size, memory of the process.

As the api-server makes them, in one process with Airflow's door imported; without the network.
"""

import json
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from shardaudit.adapters.clock import now
from shardaudit.model.config.settings import Settings
from shardaudit.page.airflow_door import Rights
from shardaudit.page.site import Site
from tests.bench.timing import median_seconds
from tests.page_warehouse import STREAM, shard_name, write_many_findings, write_warehouse

SHARDS = 1800
BUCKET = timedelta(minutes=5)
FINDINGS = 5_000_000


def main(folder: str) -> None:
    """Prints its measurements."""
    warehouse = Path(folder) / "page-warehouse"
    if not warehouse.exists():
        # In a process of its own: making it takes more memory than the page may.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            made = pool.submit(write_warehouse, warehouse, now=now(), shards=SHARDS, bucket=BUCKET)
            made.result()
            many = partial(write_many_findings, now=now(), shards=SHARDS, findings=FINDINGS)
            pool.submit(many, warehouse).result()
    stream = {
        "stream_name": STREAM,
        "bucket": "5m",
        "traces": {"path": "unused"},
        "sink": {"path": "unused"},
    }
    settings = Settings.model_validate({"warehouse": str(warehouse), "streams": {STREAM: stream}})
    rights = Rights(may_backfill=True, may_see=lambda _: True)
    pages = Site(lambda: settings, now).pages().by_path
    one = {"first": shard_name(375), "last": shard_name(375)}
    some = {"first": shard_name(360), "last": shard_name(371)}
    asked = {
        "streams": ("/", {}),
        "map of a stream": ("/stream", {"stream": STREAM}),
        "map of its loss": ("/stream", {"stream": STREAM, "metric": "loss"}),
        "map of 12 shards": ("/stream", {"stream": STREAM, **some}),
        "latency of 12 shards": ("/stream", {"stream": STREAM, "metric": "p99", **some}),
        "map of its skew": ("/stream", {"stream": STREAM, "metric": "skew"}),
        "one shard": ("/shard", {"stream": STREAM, **one}),
        "its open findings": ("/shard", {"stream": STREAM, "state": "open", **one}),
    }
    found = {}
    for name, (path, query) in asked.items():
        start = time.perf_counter()
        body = str(pages[path](query, rights).body)
        first = time.perf_counter() - start
        seconds = median_seconds(partial(pages[path], query, rights))
        found[name] = {"first": first, "seconds": seconds, "kib": len(body.encode()) / 1024}
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak_gib = peak_kib / 2**20 if sys.platform != "darwin" else peak_kib / 2**30
    print(json.dumps({"page": found, "page_peak_gib": peak_gib}))  # noqa: T201 - the result


if __name__ == "__main__":
    main(sys.argv[1])
