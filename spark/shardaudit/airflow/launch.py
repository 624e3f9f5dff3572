"""Runs a shardaudit command; its exit code decides whether Airflow tries again.

Apache Spark gets it by spark-submit, the embedded engine runs it in a child process of the task.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

import shardaudit
from shardaudit.airflow.planned_jobs import PlannedJob
from shardaudit.airflow.telemetry import lineage, operator_lineage
from shardaudit.model.config.choices import EngineName
from shardaudit.model.config.parts import NAMED_JARS
from shardaudit.model.errors import FinalError, RetryableError, ShardauditError
from shardaudit.model.exit_code import ExitCode

# To stop by itself. Airflow kills a task's own process 5 seconds after it asked it to end.
_POLITE_SECONDS = 3.0

_JARS = "SHARDAUDIT_JARS"  # a folder of jars on the Airflow side; unset where the cluster has them

# A driver of spark-submit has 1 GB unless told; [spark] of the configuration overrides all of it.
_DRIVER = {
    # As on one machine (adapters/engine/apache_spark.py): `make bench` shows that it suffices.
    "spark.driver.memory": "2500m",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -Djdk.nio.maxCachedBufferSize=262144",
    "spark.log.level": "WARN",
}
_REASONS: dict[int, str] = {
    ExitCode.FAILED: "it failed in a way that another try does not cure",
    ExitCode.USAGE: "it refused its arguments or its configuration",
    ExitCode.BAD_VERDICT: "it was asked to check, and the verdict is bad",
}
# From outside: a machine that is drained or short of memory, somebody who restarts it.
_KILLED = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGALRM}
_BROKE = "engine_broke"  # what a try notes for the next one
_OF_SHELLS = 128  # a shell, and a container, say so much more than the signal that ended it
_MEMORY = (
    "Where it goes on: more memory (embedded.memory, or spark.driver.memory under [spark], and the "
    "limit of the machine or container)"
)


class Child:
    """A command at work: a fresh program, never a fork of this one, with its environment.

    It stays in its parent's session: who ends that, as our local Airflow does, ends it, too.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="backslashreplace",
            process_group=0,
        )

    def follow(self, tell: Callable[[str], None]) -> int:
        """Its exit code, once every line of it was told; below zero the signal that ended it.

        Whatever is raised meanwhile, as a time limit is, ends it.
        """
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        with self._process.stdout as lines:
            try:
                for line in lines:
                    tell(line.rstrip())
                return self._process.wait()
            except BaseException:
                self.end()
                self._process.wait()
                raise

    def end(self, *, polite_s: float = _POLITE_SECONDS) -> None:
        """Ends it and its group; first as Ctrl-C does, so that it gives back what it holds.

        May be called by a signal's handler: it waits for no lock that the interrupted code has.
        """
        if self._process.poll() is None:
            self._send(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(polite_s)
        self._send(signal.SIGKILL)

    def _send(self, one: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # all of the group has ended
            os.killpg(self._process.pid, one)


class JobBusyError(RetryableError):
    """The command ended with 75: a later try may work."""


class JobKilledError(RetryableError):
    """The command was ended, or its engine broke, in the middle of its work."""


class JobFailedError(FinalError, AirflowFailException):
    """The command said no, or its engine breaks whenever it runs: another try ends the same."""


class ShardauditJob(SparkSubmitOperator):
    """Runs one command of a planned job on the engine that was planned for it.

    One Spark driver, where the connection says; or one process here, which needs no connection.
    The command line carries no credentials: the job finds them in the usual AWS chain.
    """

    template_fields = (*SparkSubmitOperator.template_fields, "planned")

    def __init__(self, *, command: str, planned: PlannedJob, **kwargs: Any) -> None:
        # Not durable: a retry asks for the warehouse anew, which a driver that still runs holds.
        main = str(Path(shardaudit.__file__).parent / "cli" / "main.py")
        super().__init__(application=main, durable=False, **kwargs)
        self.command = command
        self.planned = planned
        self._child: Child | None = None

    def execute(self, context: Context) -> None:
        """Runs the job and waits for it.

        Raises:
            JobBusyError: exit code 75; Airflow tries again.
            JobKilledError: a signal ended it; Airflow tries again.
            JobFailedError: any other failure; Airflow does not try again.
        """
        name = f"shardaudit {self.command} {self.planned['stream']}"
        if self.planned["engines"][self.command] == EngineName.EMBEDDED:
            code = self._run_here(name)
            if code != ExitCode.DONE:
                raise _note_end(name, code, context)
            return
        self._submit(name, context)

    def on_kill(self) -> None:
        """Ends what runs: the child with its group, or the Spark driver."""
        if self._child is not None:
            self._child.end()
        elif self._hook is not None:
            super().on_kill()

    def _run_here(self, name: str) -> int:
        """The exit code of the command in a child process, whose lines are the task's log."""
        words = self.planned["arguments"][self.command]
        self.log.info("%s runs in this task, on the embedded engine", name)
        engine = f"--engine={EngineName.EMBEDDED}"
        self._child = Child([sys.executable, "-m", "shardaudit.cli.main", engine, *words])
        try:
            return self._child.follow(lambda line: self.log.info("%s", line))
        finally:
            self._child = None

    def _submit(self, name: str, context: Context) -> None:
        self.name = name
        self.conf = _DRIVER | self.planned["driver"]
        self.jars = ",".join(filter(None, (_jars(), self.conf.pop(NAMED_JARS, None)))) or None
        self.application_args = list(self.planned["arguments"][self.command])
        try:
            super().execute(context)
        except FileNotFoundError as error:
            raise JobFailedError(f"{name}: no spark-submit on Airflow's PATH") from error
        except AirflowException as error:
            code = self._exit_code()
            if code is None:
                raise JobFailedError(f"{name} was not started: {error}") from None
            # Not from the hook's error: its text repeats the whole command and log.
            raise _note_end(name, code, context) from None

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:  # Any: Airflow's
        """What the job read and wrote; Airflow's OpenLineage provider asks for it."""
        del task_instance
        return operator_lineage(lineage(self.command, self.planned))

    def _exit_code(self) -> int | None:
        """What the driver left behind; None when it was never started."""
        if self._hook is None:
            return None
        process, in_pod = self._hook._submit_sp, self._hook._spark_exit_code  # noqa: SLF001 - the provider tells it only in a sentence
        return None if process is None else in_pod or process.returncode


def _note_end(name: str, code: int, context: Context) -> ShardauditError:
    """What the exit code means. An engine that breaks by itself is noted, and tried once more."""
    if code == ExitCode.RETRY:
        return JobBusyError(f"{name} ended with 75: a later try may work")
    by = -code if code < 0 else code - _OF_SHELLS
    if by in _KILLED:
        return JobKilledError(f"{name} was ended by {signal.Signals(by).name}. {_MEMORY}")
    if by in set(signal.Signals):
        said = f"the engine of {name} broke ({signal.Signals(by).name})"
        if _note_break(context):
            return JobKilledError(f"{said}: it is tried once more")
        return JobFailedError(f'{said} again. {_MEMORY}, or engine = "spark"')
    reason = _REASONS.get(code, "it did not end by itself")
    return JobFailedError(f"{name} ended with {code}: {reason}. Its own words are in the log above")


def _note_break(context: Context) -> bool:
    """Whether the engine had not broken before, of all tries: Airflow keeps our note between them.

    Its try's number would not do: the ones before may have waited for others, or been killed. Who
    clears a task that failed begins to count anew.
    """
    notes = context["task_state_store"]
    if notes.get(_BROKE):
        notes.delete(_BROKE)
        return False
    notes.set(_BROKE, value=True)
    return True


def _jars() -> str | None:
    """The jars of the folder as spark-submit wants them."""
    folder = os.environ.get(_JARS)
    if not folder:
        return None
    jars = sorted(str(jar.absolute()) for jar in Path(folder).glob("*.jar"))
    if not jars:
        raise JobFailedError(f"{_JARS}={folder} holds no jars: run `make setup`")
    return ",".join(jars)
