"""Gives the embedded engine's checkpoints back, apart from whatever runs.

PySpark 4.1 asks the server for it in `__del__`, and waits. Python may collect garbage anywhere: in
one of our readers, too, for which the server waits itself, and then both wait for ever.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue

from pyspark.sql.connect.plan import CachedRemoteRelation


@contextmanager
def released_apart() -> Iterator[None]:
    """Has a thread of its own release what falls out of use in the block."""
    unused: SimpleQueue[CachedRemoteRelation | None] = SimpleQueue()  # may be put to in `__del__`
    release = CachedRemoteRelation.__del__

    def released() -> None:
        while (checkpoint := unused.get()) is not None:
            with suppress(Exception):  # the session is over, and the folder with it
                release(checkpoint)

    def given_up(checkpoint: CachedRemoteRelation) -> None:
        unused.put(checkpoint)

    threading.Thread(target=released, daemon=True).start()
    CachedRemoteRelation.__del__ = given_up  # type: ignore[method-assign]
    try:
        yield
    finally:
        CachedRemoteRelation.__del__ = release  # type: ignore[method-assign]
        unused.put(None)
