"""The folder of the local Airflow: its settings, its password, and who uses it."""

import fcntl
import json
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

from shardaudit.model.errors import FinalError

USER = "admin"
HOST = "127.0.0.1"
ROOT = Path(__file__).parents[1]
_AUTH = "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager"


class AirflowRunningError(FinalError, BlockingIOError):
    """Another Airflow uses the same home."""

    def __init__(self, home: Path, pids: str) -> None:
        super().__init__(
            f"an Airflow already runs on {home} (processes {pids}): end it where it was started, "
            f"or with `kill -INT {pids}`"
        )


def environment(home: Path, port: int, *, config: Path, given: Mapping[str, str]) -> dict[str, str]:
    """What Airflow's processes, and the Spark drivers that they start, find around them."""
    env = dict(given)
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # it makes every start of Airflow 4 times slower
    # Where a driver runs is the user's to say; these hold only when nobody did.
    if "AIRFLOW_CONN_SPARK_DEFAULT" not in env:
        env["AIRFLOW_CONN_SPARK_DEFAULT"] = '{"conn_type": "spark", "host": "local[*]"}'
        env["SPARK_LOCAL_IP"] = HOST
    env.setdefault("SHARDAUDIT_JARS", str(ROOT / ".cache" / "jars" / "spark"))
    sources = str(ROOT / "spark")
    return {
        **env,
        **_settings(home.absolute(), port),
        "PATH": os.pathsep.join((beside_python(), env.get("PATH", os.defpath))),
        "PYTHONPATH": os.pathsep.join(filter(None, (sources, env.get("PYTHONPATH")))),
        "SHARDAUDIT_CONFIG": str(config.absolute()),
    }


def _settings(home: Path, port: int) -> dict[str, str]:
    url = f"http://{HOST}:{port}"
    sections: dict[str, dict[str, str]] = {
        "CORE": {
            "DAGS_FOLDER": str(ROOT / "dags"),
            "LOAD_EXAMPLES": "False",
            "EXECUTOR": "LocalExecutor",
            "PARALLELISM": "4",
            "EXECUTION_API_SERVER_URL": f"{url}/execution/",
            "AUTH_MANAGER": _AUTH,
            "SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
            "SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(password_file(home)),
        },
        "DATABASE": {"SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db"},
        "API": {"HOST": HOST, "PORT": str(port), "BASE_URL": url, "WORKERS": "1"},
        # Between two looks at a task's process: its end is noticed that much later.
        "WORKERS": {"MIN_HEARTBEAT_INTERVAL": "1"},
        "DAG_PROCESSOR": {"REFRESH_INTERVAL": "60", "MIN_FILE_PROCESS_INTERVAL": "60"},
        "LOGGING": {"BASE_LOG_FOLDER": str(home / "logs")},
    }
    named = {
        f"AIRFLOW__{section}__{key}": value
        for section, pairs in sections.items()
        for key, value in pairs.items()
    }
    return {"AIRFLOW_HOME": str(home), **named}


def beside_python(command: str = "") -> str:
    """The folder of this Python, or a command in it: Airflow's, spark-submit."""
    return str(Path(sys.executable).parent / command)


def password_file(home: Path) -> Path:
    """The file, for its owner's eyes only, that holds the login's password."""
    return home / "passwords.json"


def password(home: Path) -> str:
    """The password of `USER`, made once per home."""
    file = password_file(home)
    if not file.exists():
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as passwords:
            json.dump({USER: secrets.token_urlsafe(12)}, passwords)
    return str(json.loads(file.read_text())[USER])


def lock_home(home: Path) -> int:
    """A file descriptor that marks the home as used; whoever inherits it holds the mark too.

    Raises:
        AirflowRunningError: somebody else has it.
    """
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(home / "running.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        pids = os.read(lock, 200).decode() or "unknown"
        os.close(lock)
        raise AirflowRunningError(home, pids) from error
    return lock
