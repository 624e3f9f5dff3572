"""How often a task is tried and how long it may take, for all DAGs."""

from datetime import timedelta

from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule

from shardaudit.model.errors import RetryableError

# Of one DAG. Most wait: for a person, for an audit; and no stream is to wait for another's.
RUNS_AT_ONCE = 1_000
# What type an error has decides whether another try may help; exit code 75 gives such an error.
_ONLY_RETRYABLE = ExceptionRetryPolicy([RetryRule(RetryableError)], default=RetryAction.FAIL)
# A night is over by then: who hangs longer keeps all others from running.
OF_TASKS = {
    "execution_timeout": timedelta(hours=12),
    "retries": 3,
    "retry_delay": timedelta(minutes=5),
    "retry_exponential_backoff": 2.0,
    "retry_policy": _ONLY_RETRYABLE,
}
# Another watch begins within a quarter of an hour, and not before this one is over: a stream, or a
# receiver, that does not answer is to keep nobody from seeing and telling what the others do.
OF_WATCHES = OF_TASKS | {
    "execution_timeout": timedelta(hours=1),  # who hangs keeps every later watch from running
    "retries": 1,
    "retry_delay": timedelta(minutes=1),
}
