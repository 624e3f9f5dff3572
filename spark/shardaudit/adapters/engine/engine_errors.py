"""An engine's and Delta's errors in our tree: a later try may cure them, but for a short list.

What an engine says of the network, of storage and of its own parts has more forms than anybody can
list; what another try would meet again has few: refused access, memory and disk, a plan that makes
no sense, a setting, a defect of ours.
"""

import builtins
import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    IllegalArgumentException,
    PickleException,
    PySparkException,
    PythonException,
    SparkUpgradeException,
    UnsupportedOperationException,
)
from pyspark.errors.exceptions.connect import InvalidPlanInput

from shardaudit.adapters.files.access_refused import is_refused, plain_words
from shardaudit.model.errors import FinalError, RetryableError, ShardauditError

# gRPC's words of an answer that came, and was no message.
UNREADABLE = "Exception deserializing response"
# Sail's, which was asked again for an answer and had let go of it.
LET_GO = "task context not found for operation"
# Another writer's commit came first.
_CONFLICTS = (
    "ConcurrentAppendException",
    "DELTA_CONCURRENT_",
    "ConcurrentModificationException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
)
# Names of Java exceptions, anywhere in the chain of causes, and Sail's words: they pass, whatever
# the engine makes of them. The network, an overloaded service, a machine that is gone with what it
# had kept. Sail says of some that an analysis failed.
_PASSING = (
    *_CONFLICTS,
    "429 Too Many Requests",
    "500 Internal Server Error",
    "502 Bad Gateway",
    "503 Service Unavailable",
    "504 Gateway Timeout",
    "AWSApiCallTimeoutException",
    "AWSClientIOException",
    "AWSNoResponseException",
    "AWSServiceIOException",
    "AWSServiceThrottledException",
    "AWSStatus500Exception",
    "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND",
    "ConnectException",
    "ExecutorLostFailure",
    "FetchFailed",
    "HttpChannelEOFException",
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
    "Generic S3 error",
)
# What another try would meet again, and what helps, where that is known.
_MEMORY = "; raise embedded.memory, or take Apache Spark (--engine spark)"
_DISK = "; free the warehouse's disk, or set TMPDIR to one that has room"
_CURES = {
    "Failed to allocate": _MEMORY,
    "Resources exhausted": _MEMORY,
    "OutOfMemoryError": "; raise spark.driver.memory (on a cluster spark.executor.memory) under "
    "[spark]",
    os.strerror(errno.ENOSPC): _DISK,
    os.strerror(errno.EDQUOT): _DISK,
    os.strerror(errno.EMFILE): "",  # the command line says what to do
}
# Of what Java says in words alone: settings, jars that are not there, a bucket that is not.
_FINAL_WORDS = (
    "ClassNotFoundException",
    "CredentialInitializationException",
    "IllegalArgumentException",
    "Could not parse Master URL",
    "NoAuthWithAWSException",
    "NoAwsCredentialsException",
    "NoClassDefFoundError",
    "NoSuchBucket",
    "NoSuchMethodError",
    "UnknownStoreException",
    "UnsupportedOperationException",
)
# A plan, or values, that make no sense; beside them what PySpark itself says of our calls.
_FINAL_KINDS = (
    AnalysisException,
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    IllegalArgumentException,
    InvalidPlanInput,
    PickleException,
    PythonException,
    SparkUpgradeException,
    UnsupportedOperationException,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
# SQLSTATE's classes of features that are not there, data, constraints, syntax and names.
_FINAL_STATES = ("0A", "21", "22", "23", "42")
_GONE = (
    "Apache Spark's process is gone: killed, most often for memory (see spark.driver.memory under "
    "[spark] and the limit of the container)"
)
_UNREACHABLE = "StatusCode.UNAVAILABLE"  # gRPC's word for a server that is not there
_PYTHON_STACK = "Traceback (most recent call last):"
_PYTHON_ERROR = re.compile(r"^(?:[\w<>]+\.)*(\w+)(?::|$)", re.MULTILINE)


class SparkFailedError(FinalError, RuntimeError):
    """A Spark job ended in an error that another try would meet again."""


class SparkInterruptedError(RetryableError, ConnectionError):
    """A Spark job ended, and another try may work: something did not answer, or broke."""


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
        said = _first_words(text)
        if is_passing(error):
            name = next((f"{name}: " for name in _PASSING if name in text), "the engine says: ")
            raise SparkInterruptedError(f"{name}{said}") from error
        raise SparkFailedError(f"the engine says: {said}{_cure(text)}") from error


def is_passing(error: Exception) -> bool:
    """Whether another try may work, of an error that an engine gave."""
    text = str(error)
    if is_refused(text) or any(words in text for words in _CURES):
        return False
    if any(name in text for name in _PASSING):
        return True
    if _PYTHON_STACK in text:
        return _is_of_storage(text)
    state = error.getSqlState() if isinstance(error, PySparkException) else None
    return not (
        isinstance(error, _FINAL_KINDS)
        or (state or "").startswith(_FINAL_STATES)
        or any(words in text for words in _FINAL_WORDS)
    )


def is_conflict(error: Exception) -> bool:
    """Whether another writer's commit came first."""
    return any(name in str(error) for name in _CONFLICTS)


def _is_of_storage(text: str) -> bool:
    """Whether a Python worker ended for what passes, and not for a defect of what it ran."""
    ours = {kind.__name__ for kind in _below(RetryableError)}
    kinds = [name for name in _PYTHON_ERROR.findall(text) if name in ours or _builtin(name)]
    if not kinds:
        return False
    found = _builtin(kinds[-1])
    return kinds[-1] in ours or (found is not None and issubclass(found, OSError))


def _builtin(name: str) -> type[Exception] | None:
    found = getattr(builtins, name, None)
    return found if isinstance(found, type) and issubclass(found, Exception) else None


def _below(kind: type[Exception]) -> Iterator[type[Exception]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


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
