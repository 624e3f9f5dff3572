import errno
import os

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException, PySparkTypeError
from pyspark.errors.exceptions import connect

from shardaudit.adapters.engine.engine_errors import (
    SparkFailedError,
    SparkInterruptedError,
    is_conflict,
    is_passing,
    spark_errors,
)

REFUSED = """An error occurred while calling o42.save.
: org.apache.hadoop.net.ConnectException: Call to 127.0.0.1 failed
\tat org.apache.hadoop.fs.s3a.S3AUtils.translateException(S3AUtils.java:1)
Caused by: java.net.ConnectException: Connection refused
"""


def test_error_is_retryable_when_something_did_not_answer() -> None:
    with (
        pytest.raises(
            SparkInterruptedError, match=r"^ConnectException: org\.apache.*Call to 127\.0\.0\.1"
        ),
        spark_errors(),
    ):
        raise Py4JError(REFUSED)


def test_error_is_final_when_spark_cannot_do_what_is_asked() -> None:
    with (
        pytest.raises(SparkFailedError, match=r"^the engine says: no such column$"),
        spark_errors(),
    ):
        raise AnalysisException("no such column\nat line 3")


def test_error_of_a_python_worker_is_told_by_its_last_line() -> None:
    text = (
        "An exception was thrown from the Python worker. Please see the stack trace below.\n"
        "Traceback (most recent call last):\n"
        '  File "worker.py", line 1, in main\n'
        "    import nothing\n"
        "ModuleNotFoundError: No module named 'nothing'\n"
    )
    with (
        pytest.raises(
            SparkFailedError, match=r"^the engine says: ModuleNotFoundError: No module named"
        ),
        spark_errors(),
    ):
        raise AnalysisException(text)


@pytest.mark.parametrize(
    ("said", "cure"),
    [
        ("Failed to allocate additional 17.0 MB for HashJoinInput[1]", "raise embedded.memory"),
        ("Resources exhausted: no room", "raise embedded.memory"),
        ("Generic LocalFileSystem error: No space left on device (os error 28)", "TMPDIR"),
    ],
)
def test_cure_is_named_when_it_is_known(said: str, cure: str) -> None:
    with pytest.raises(SparkFailedError, match=cure), spark_errors():
        raise PySparkException(said)


LOST = (
    "Job aborted due to stage failure: Task 0 in stage 81.0 failed 4 times, most recent failure: "
    "Lost task 0.3 in stage 81.0 (TID 9) (10.0.0.7 executor 2): org.apache.spark.SparkException: "
    "[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_112_0 not found!"
)


def test_what_a_lost_executor_had_kept_is_worth_another_try() -> None:
    with pytest.raises(SparkInterruptedError, match="rdd_112_0 not found"), spark_errors():
        raise PySparkException(LOST)


@pytest.mark.parametrize(
    "said", ["end of file before message length reached", "Exception deserializing response!"]
)
def test_what_the_embedded_engine_says_of_an_answer_that_was_cut_is_passing(said: str) -> None:
    assert is_passing(PySparkException(said))


STAGE = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: "
)
S3A = "(org.apache.hadoop.fs.s3a.{}) getFileStatus on s3a://lake/t: software.amazon.awssdk.{}"
WORKER = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/app/worker.py", line 1, in read
{}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.read(PythonRunner.scala:581)
"""
PASSES: list[Exception] = [
    connect.UnknownException(S3A.format(f"AWS{kind}", "core.exception"))
    for kind in (
        *("ApiCallTimeoutException", "ClientIOException", "NoResponseException"),
        *("ServiceThrottledException", "Status500Exception", "S3IOException"),
    )
]
PASSES += [
    connect.SparkException(STAGE + "java.lang.IllegalStateException: Connection pool shut down"),
    connect.SparkException(STAGE + "ExecutorLostFailure (executor 1 exited: OOM killer, 137)"),
    connect.SparkException("[FAILED_READ_FILE.NO_HINT] Encountered error while reading file t"),
    connect.SparkException("Python worker exited unexpectedly (crashed)"),
    connect.SparkRuntimeException("internal error: channel closed"),
    connect.QueryExecutionException("Parquet error: EOF: file size of 7 is less than footer"),
    # Sail says of what it meets at work that an analysis failed.
    connect.AnalysisException("External error: Generic S3 error: Error after 10 retries"),
    connect.SparkConnectGrpcException("a form of words that nobody has seen"),
    connect.PythonException(WORKER.format("shardaudit.files.StorageError: s3a://t: cut")),
    connect.PythonException(WORKER.format("OSError: When reading: AWS Error NETWORK_CONNECTION")),
]
FINAL: list[Exception] = [
    connect.AnalysisException("[UNRESOLVED_COLUMN] a column `x` cannot be resolved"),
    connect.ParseException("[PARSE_SYNTAX_ERROR] Syntax error at or near 'x'"),
    connect.NumberFormatException("[CAST_INVALID_INPUT] The value 'x' cannot be cast"),
    connect.SparkRuntimeException("a NULL where none may be", sql_state="23502"),
    connect.UnsupportedOperationException("not implemented: collation"),
    connect.UnknownException("(java.nio.file.AccessDeniedException) s3a://lake/t: 403"),
    connect.UnknownException("(org.apache.hadoop.fs.s3a.UnknownStoreException) s3a://lake/"),
    connect.SparkException(STAGE + "java.lang.OutOfMemoryError: Java heap space"),
    connect.SparkException(STAGE + f"java.io.IOException: {os.strerror(errno.ENOSPC)}"),
    connect.PythonException(WORKER.format("KeyError: 'message_id'")),
    # The first was storage, and what ended it a defect of ours.
    connect.PythonException(WORKER.format("OSError: cut\n\nDuring it:\n\nTypeError: no")),
    Py4JError("calling o1.load\n: java.lang.ClassNotFoundException: delta.DefaultSource"),
    PySparkTypeError("a call of ours"),
]


@pytest.mark.parametrize("error", PASSES, ids=str)
def test_what_an_engine_says_is_worth_another_try(error: Exception) -> None:
    with pytest.raises(SparkInterruptedError), spark_errors():
        raise error


@pytest.mark.parametrize("error", FINAL, ids=str)
def test_what_another_try_would_meet_again_is_final(error: Exception) -> None:
    with pytest.raises(SparkFailedError), spark_errors():
        raise error


def test_only_another_writers_commit_is_a_conflict() -> None:
    assert is_conflict(PySparkException("[DELTA_CONCURRENT_APPEND] files were added"))
    assert not any(is_conflict(error) for error in PASSES + FINAL)
