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
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # the parent ends it
    child.start()
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    there.close()
    try:
        while batch := here.recv_bytes():
            yield pa.ipc.read_record_batch(batch, schema)
        if error := here.recv():
            raise ReaderError(error)
    except EOFError:
        child.join()
        code = child.exitcode or 0
        if code < 0:
            os.kill(os.getpid(), -code)
        # It did not start, or this process does not die of that signal.
        raise ReaderError(f"the child that read ended with {code}") from None
    finally:
        child.kill()
        child.join()


def _give(parent: Connection, read: Callable[[], ArrowBatches]) -> None:
    # Or whoever waits for the end of what the parent says waits for this one, too.
    nothing = os.open(os.devnull, os.O_WRONLY)
    for said in {1, 2} - {parent.fileno()}:
        os.dup2(nothing, said)
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
