import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException

from shardaudit.adapters.engine.engine_errors import (
    SparkFailedError,
    SparkInterruptedError,
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
