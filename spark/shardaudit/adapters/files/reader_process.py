"""Files read by a child: readers written in Python share one lock, so in one process one core."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection

import pyarrow as pa

ArrowBatches = Iterator[pa.RecordBatch]
_END = b""  # no batch is empty


class ReaderError(Exception):
    """What a child's reader raised, in words: its class, and what it said."""


def read_by_child(read: Callable[[], ArrowBatches], schema: pa.Schema) -> ArrowBatches:
    """What `read`, which can be pickled, gives in a child of this process.

    A child that is killed takes this process with it: so would its reader have done, and the next
    run tries the files one by one.

    Raises:
        ReaderError: the reader did not come to its end.
    """
    spawning = multiprocessing.get_context("spawn")
    here, there = spawning.Pipe(duplex=False)
    child = spawning.Process(target=_give, args=(there, read), daemon=True)
    child.start()
    there.close()
    try:
        while batch := here.recv_bytes():
            yield pa.ipc.read_record_batch(batch, schema)
        if error := here.recv():
            raise ReaderError(error)
    except EOFError:
        child.join()
        died_of = -(child.exitcode or 0)
        os.kill(os.getpid(), died_of if died_of > 0 else signal.SIGKILL)
    finally:
        child.kill()
        child.join()


def _give(parent: Connection, read: Callable[[], ArrowBatches]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    error = None
    try:
        for batch in read():
            parent.send_bytes(batch.serialize())
    except BrokenPipeError:  # nobody wants more
        return
    except Exception as raised:  # noqa: BLE001 - the parent raises it
        error = f"{type(raised).__name__}: {raised}"
    parent.send_bytes(_END)
    parent.send(error)
