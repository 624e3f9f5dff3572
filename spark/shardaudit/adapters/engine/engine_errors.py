"""An engine's and Delta's errors in our tree: which of them a later try may cure."""

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from shardaudit.adapters.files.access_refused import plain_words
from shardaudit.model.errors import FinalError, RetryableError, ShardauditError

# gRPC's words of an answer that came, and was no message.
UNREADABLE = "Exception deserializing response"
# Sail's, which was asked again for an answer and had let go of it.
LET_GO = "task context not found for operation"
# Names of Java exceptions, anywhere in the chain of causes, and Sail's words. The network, an
# overloaded service, a machine that is gone with what it had kept, a commit that met another one.
_PASSING = (
    "429 Too Many Requests",
    "500 Internal Server Error",
    "502 Bad Gateway",
    "503 Service Unavailable",
    "504 Gateway Timeout",
    "AWSServiceIOException",
    "AWSServiceThrottledException",
    "AWSStatus500Exception",
    "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND",
    "ConcurrentAppendException",
    "DELTA_CONCURRENT_",
    "ConcurrentModificationException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "ConnectException",
    "ExecutorLostFailure",
    "FetchFailed",
    "NoRouteToHostException",
    "SocketException",
    "SocketTimeoutException",
    "UnknownHostException",
    UNREADABLE,
    LET_GO,
    "Connection refused",
    "Connection reset",
    "connection closed",
    "end of file before message length reached",
    "error sending request",
    "operation timed out",
)
# Words of the embedded engine, and what to do.
_MEMORY = "; raise embedded.memory, or take Apache Spark (--engine spark)"
_CURES = {
    "Failed to allocate": _MEMORY,
    "Resources exhausted": _MEMORY,
    "No space left on device": "; free the warehouse's disk, or set TMPDIR to one that has room",
}
_GONE = (
    "Apache Spark's process is gone: killed, most often for memory (see spark.driver.memory under "
    "[spark] and the limit of the container)"
)
_UNREACHABLE = "StatusCode.UNAVAILABLE"  # gRPC's word for a server that is not there
_PYTHON_STACK = "Traceback (most recent call last):"


class SparkFailedError(FinalError, RuntimeError):
    """A Spark job ended in an error that another try would meet again."""


class SparkInterruptedError(RetryableError, ConnectionError):
    """A Spark job ended because something did not answer, or wrote at the same time."""


@contextmanager
def spark_errors() -> Iterator[None]:
    """Turns the errors of Spark in its block into ours, with the first line of what it said."""
    try:
        yield
    except ShardauditError:
        raise
    except (Py4JError, PySparkException, ConnectionError) as error:
        # Ctrl-C came first: the embedded engine ends by it, and then cannot be asked to.
        if _came_of(error, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        text = str(error)
        if (
            _came_of(error, Py4JNetworkError, ConnectionError)
            or _is_speechless(error)
            or _UNREACHABLE in text
        ):
            raise SparkInterruptedError(_GONE) from error
        passing = _passing_names(text)
        said = _first_words(text)
        if passing:
            raise SparkInterruptedError(f"{passing[0]}: {said}") from error
        raise SparkFailedError(f"the engine says: {said}{_cure(text)}") from error


def _cure(text: str) -> str:
    """What helps, where that is known."""
    return next((cure for words, cure in _CURES.items() if words in text), "")


def _came_of(error: BaseException | None, *kinds: type[BaseException]) -> bool:
    """Whether one of these was first."""
    while error is not None and not isinstance(error, kinds):
        error = error.__cause__ or error.__context__
    return error is not None


def _is_speechless(error: Exception) -> bool:
    """Whether py4j got no answer at all: of what Java says it gives the words and their trace."""
    return type(error) is Py4JError and "\n" not in str(error)


def is_passing(error: Exception) -> bool:
    """Whether another try may work: something did not answer, or wrote at the same time."""
    return bool(_passing_names(str(error)))


def _passing_names(text: str) -> list[str]:
    return [name for name in _PASSING if name in text]


def _first_words(text: str) -> str:
    """What the exception says, without py4j's introduction and the stacks around it."""
    lines = [line for line in text.splitlines() if line.strip()]
    if _PYTHON_STACK in text:  # the error of a Python worker: its stack is told first
        below = lines[next(i for i, line in enumerate(lines) if _PYTHON_STACK in line) + 1 :]
        lines = [line for line in below if not line.startswith(" ")]
    said = [
        line.strip().removeprefix(": ")
        for line in lines
        if not line.strip().startswith(("An error occurred while", "at "))
    ]
    return plain_words(said[0]) if said else "no words"
