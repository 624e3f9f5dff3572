"""A proxy before an S3 server that answers later, and lets two commits of a Delta table meet."""

import asyncio
import re
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

LATENCY_S = 0.005  # of each chunk, there and back
PATIENCE_S = 30.0  # how long a commit waits for another one of its version, at most
_PUT = re.compile(rb"PUT (\S+) ")
_COMMIT = re.compile(r"/_delta_log/\d{20}\.json$")


class SlowS3:
    """The first PUT of a version of a table waits for a second one; then both go on at once.

    `is_shared`: two write; who is alone waits for nobody. `met`: how often two did.
    `before`: is told the path of each PUT before it goes on.
    """

    def __init__(self, behind: str) -> None:
        self._behind = urlsplit(behind)
        self._waiting: set[str] = set()
        self.is_shared = False
        self.met = 0
        self.before: Callable[[str], None] = lambda _: None

    async def connected(
        self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter
    ) -> None:
        behind, to_behind = await asyncio.open_connection(self._behind.hostname, self._behind.port)
        await asyncio.gather(self._passed_on(client, to_behind), self._passed_on(behind, to_client))

    async def _passed_on(self, source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while chunk := await source.read(2**16):
                await asyncio.sleep(LATENCY_S)
                if put := _PUT.match(chunk):  # a client waits for its answer: so it begins a chunk
                    await self._put(put[1].decode())
                to.write(chunk)
                await to.drain()
        to.close()
        with suppress(ConnectionError):
            await to.wait_closed()

    async def _put(self, path: str) -> None:
        self.before(path)
        if not _COMMIT.search(path):
            return
        if path in self._waiting:
            self._waiting.remove(path)
            self.met += 1
            return
        self._waiting.add(path)
        until = time.monotonic() + PATIENCE_S
        while path in self._waiting and self.is_shared and time.monotonic() < until:
            await asyncio.sleep(LATENCY_S)
        self._waiting.discard(path)


@contextmanager
def slow_s3(url: str) -> Iterator[tuple[SlowS3, str]]:
    """The proxy, and its address."""
    proxy = SlowS3(url)
    with served(proxy.connected) as address:
        yield proxy, address


Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]]


@contextmanager
def served(connected: Connected) -> Iterator[str]:
    """The address, on a free port of 127.0.0.1, of what answers there until the block ends."""
    ports, is_open = list[int](), threading.Event()
    loop, stopped = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        async with server:
            ports.append(server.sockets[0].getsockname()[1])
            is_open.set()
            await stopped.wait()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert is_open.wait(20)
    try:
        yield f"http://127.0.0.1:{ports[0]}"
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join(20)
