"""A local Airflow of the project's own: started, waited for, stopped. SQLite, 127.0.0.1 only.

The components are started one by one and not by `airflow standalone`: that one also opens two log
servers on every interface of the machine. The web page reads the logs from the disk without them.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from shardaudit.model.errors import FinalError
from shardaudit.simulate.s3proxy import free_port
from tools.airflow_api import AirflowApi
from tools.airflow_home import (
    HOST,
    USER,
    environment,
    lock_home,
    password,
)

_COMPONENTS = {
    "scheduler": ["scheduler", "--skip-serve-logs"],
    "dag-processor": ["dag-processor"],
    "triggerer": ["triggerer", "--skip-serve-logs"],
    "api-server": ["api-server"],
}
_START_SECONDS = 180
_STOP_SECONDS = 20


class AirflowStoppedError(FinalError, RuntimeError):
    """A part of the local Airflow did not come up or ended: what it said, where the rest is."""

    def __init__(self, part: str, log: Path) -> None:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
        super().__init__(f"Airflow's {part} does not run; the end of {log}:\n{end}")


@dataclass
class LocalAirflow:
    """An Airflow that lives as long as a `with` block.

    `home` keeps its database, password and logs; `config` is the shardaudit.toml of its DAGs.
    `changed` is what its processes find around them instead of what this project says: another
    installation's programs, DAGs, database.
    """

    home: Path
    config: Path
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    port: int = 0
    changed: Mapping[str, str] = field(default_factory=dict)
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where its page is."""
        return f"http://{HOST}:{self.port}"

    def api(self) -> AirflowApi:
        """Its REST interface, logged in."""
        return AirflowApi(HOST, self.port).login(USER, password(self.home))

    def around(self) -> dict[str, str]:
        """What its processes find around them; for a command of Airflow's beside them, too."""
        own = environment(self.home, self.port, config=self.config, given=self.env)
        return own | dict(self.changed)

    def require_free(self) -> None:
        """Does nothing while nobody uses the home.

        Raises:
            AirflowRunningError: somebody does.
        """
        os.close(lock_home(self.home))

    def start(self) -> None:
        """Starts it and waits until it is healthy.

        Raises:
            AirflowRunningError: another one uses the home.
            AirflowStoppedError: a part of it ended, or was not up in time.
        """
        lock = lock_home(self.home)
        try:
            password(self.home)
            self.port = free_port()
            if self._spawn("migrate", ["db", "migrate"], lock=lock).wait():
                raise AirflowStoppedError("database", self._log("migrate"))
            for name, command in _COMPONENTS.items():
                self._processes[name] = self._spawn(name, command, lock=lock)
            os.ftruncate(lock, 0)
            os.write(lock, " ".join(str(p.pid) for p in self._processes.values()).encode())
            self._wait_until_healthy()
        except BaseException:
            self.stop()
            raise
        finally:
            os.close(lock)  # its processes inherited it and hold it as long as one of them lives

    def stop(self) -> None:
        """Ends it: politely, then whatever is left in its sessions, Spark drivers included."""
        for process in self._processes.values():
            process.send_signal(signal.SIGINT)  # SIGTERM would leave children behind
        deadline = time.monotonic() + _STOP_SECONDS
        for process in self._processes.values():
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                continue
        _kill_sessions({process.pid for process in self._processes.values()})
        for process in self._processes.values():
            process.wait()
        self._processes.clear()

    def require_alive(self) -> None:
        """Does nothing while all of it runs.

        Raises:
            AirflowStoppedError: a part of it ended.
        """
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise AirflowStoppedError(name, self._log(name))

    def _log(self, name: str) -> Path:
        return self.home / f"{name}.log"

    def _spawn(self, name: str, command: list[str], *, lock: int) -> subprocess.Popen[bytes]:
        around = self.around()
        with self._log(name).open("wb") as log:
            return subprocess.Popen(
                [shutil.which("airflow", path=around["PATH"]) or "airflow", *command],
                env=around,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(lock,),
            )

    def _wait_until_healthy(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not AirflowApi(HOST, self.port).is_healthy():
            self.require_alive()
            if time.monotonic() > deadline:
                raise AirflowStoppedError("api-server", self._log("api-server"))
            time.sleep(0.5)


def _kill_sessions(leaders: set[int]) -> None:
    listed = subprocess.run(["/bin/ps", "-axo", "pid="], capture_output=True, text=True, check=True)
    for pid in map(int, listed.stdout.split()):
        try:
            if os.getsid(pid) in leaders:
                os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue  # it ended meanwhile; on macOS other people's sessions are not shown
