"""A session of Spark Connect, whichever engine serves it: its beginning, interruption and end."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from types import FrameType
from typing import Any, cast

from pyspark.sql import SparkSession
from pyspark.sql.connect.client.core import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import RetryPolicy
from pyspark.sql.connect.plan import CachedRemoteRelation
from pyspark.sql.connect.session import SparkSession as ConnectSession

from shardaudit.adapters.engine.engine_errors import UNREADABLE

_ENDING = (signal.SIGINT, signal.SIGTERM)
_TIDYING_S, _LAST_RELEASE_S = 15, 1
# PySpark shows what stands in it to every server.
TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 - the name of a variable
MODE = "SPARK_CONNECT_MODE_ENABLED"  # makes PySpark's functions those of Spark Connect
_interrupted = threading.Event()


class ReadAgain(RetryPolicy):
    """Asks once more for an answer that gRPC could not read, seen once in some 100,000 answers.

    Nothing is run twice: what is executed goes on behind the last part that was read.
    """

    def __init__(self) -> None:
        super().__init__(max_retries=2, initial_backoff=0)

    def can_retry(self, exception: BaseException) -> bool:
        """Whether the answer came, and was no message."""
        return UNREADABLE in str(exception)


@contextmanager
def connected(url: str) -> Iterator[SparkSession]:
    """A session with a server of our own on this machine; it ends with the block."""
    if threading.current_thread() is threading.main_thread():
        for number in _ENDING:
            signal.signal(number, _interrupt)
    # What `SparkSession.builder` does, which refuses a server where spark-submit gave a master.
    os.environ[MODE] = "1"
    os.environ.pop(TOKEN, None)  # a server of ours has it already, another would be shown it
    try:
        with _session(url) as session, released_apart():
            yield session
    finally:
        os.environ.pop(MODE, None)


@contextmanager
def _session(url: str) -> Iterator[SparkSession]:
    # A proxy that the environment names is for AWS, not for this machine.
    channel = DefaultChannelBuilder(url, [("grpc.enable_http_proxy", 0)])
    session = ConnectSession.Builder().channelBuilder(channel).create()
    try:
        # Not PySpark's own: who fails on this machine would fail again, and a dead one is asked for
        # minutes.
        session.client.set_retry_policies([ReadAgain()])
        remember_settings(session.client)
        session.conf.set("spark.sql.session.timeZone", "UTC")
        yield cast(SparkSession, session)  # as PySpark does
    finally:
        if not _interrupted.is_set():  # or a lock of gRPC's may be held, for ever
            session.stop()


def remember_settings(client: Any) -> None:  # Any: the types of what PySpark keeps to itself
    """Has a session ask for each setting once, until one is set: nobody else sets them.

    PySpark 4.1 asks the server anew for each time that a plan names.
    """
    ask = client.config
    known: dict[bytes, Any] = {}

    def answered(operation: Any) -> Any:
        if operation.WhichOneof("op_type") not in ("get", "get_with_default"):
            known.clear()
            return ask(operation)
        question = operation.SerializeToString(deterministic=True)
        if (answer := known.get(question)) is None:  # another thread may forget it meanwhile
            answer = known[question] = ask(operation)
        return answer

    client.config = answered


@contextmanager
def released_apart() -> Iterator[None]:
    """Has a thread of its own release what falls out of use in the block.

    PySpark 4.1 asks the server for it in `__del__`, and waits. Python may collect garbage anywhere:
    in one of our readers, too, for which an embedded server waits itself, and then both wait for
    ever.
    """
    unused: SimpleQueue[CachedRemoteRelation | None] = SimpleQueue()  # may be put to in `__del__`
    ended, release = threading.Event(), CachedRemoteRelation.__del__

    def released() -> None:
        while (checkpoint := unused.get()) is not None and not ended.is_set():
            with suppress(Exception):  # the session is over, and the folder with it
                release(checkpoint)

    def given_up(checkpoint: CachedRemoteRelation) -> None:
        unused.put(checkpoint)

    thread = threading.Thread(target=released, daemon=True)
    thread.start()
    CachedRemoteRelation.__del__ = given_up  # type: ignore[method-assign]
    try:
        yield
    finally:
        CachedRemoteRelation.__del__ = release  # type: ignore[method-assign]
        ended.set()
        unused.put(None)
        thread.join(_LAST_RELEASE_S)  # behind it the session ends, with all that it has


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Ends what is going on; once, so that a second one does not end the tidying up.

    The tidying up ends, too: who hangs in it would keep the warehouse, as it still lives. Whoever
    is done with it takes the alarm back.
    """
    for each in _ENDING:
        signal.signal(each, signal.SIG_IGN)
    _interrupted.set()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_TIDYING_S)
    raise KeyboardInterrupt
