"""A virtual environment that knows nothing of this project: what a person has who has Airflow."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.sbom import brought

ROOT = Path(__file__).parents[2]
# Would say where this project is, or that its Airflow is meant.
_OURS = ("PYTHON", "VIRTUAL_ENV", "AIRFLOW", "SHARDAUDIT_", "SPARK_")


@dataclass(frozen=True, slots=True)
class OwnVenv:
    """A new one in `folder`, and `environment`, in which its programs come first."""

    folder: Path
    environment: Mapping[str, str]

    def sh(self, script: str, **more: str) -> str:
        """What a script says that a person could paste into a shell; it must end well."""
        done = subprocess.run(
            ["/bin/bash", "-eu", "-c", script],
            cwd=self.folder.parent,
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{script}: {done.stdout[-2000:]} {done.stderr[-4000:]}"
        return done.stdout

    def packages(self) -> dict[str, str]:
        """What is installed, in which version."""
        lines = self.sh("python -m pip freeze --all").splitlines()
        return dict(re.split(r"==| @ ", line, maxsplit=1) for line in lines)

    def files(self) -> set[str]:
        """All files but those that Python compiles for itself."""
        found = (file for file in self.folder.rglob("*") if file.is_file())
        return {str(file.relative_to(self.folder)) for file in found if file.suffix != ".pyc"}


def own_venv(folder: Path) -> OwnVenv:
    """One with pip alone."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    return OwnVenv(folder, kept | {"PATH": f"{folder}/bin:/usr/local/bin:/usr/bin:/bin"})


def constraints_of_airflow() -> str:
    """The versions of Airflow's own packages in our lock, as a file of constraints.

    Not the file that Airflow publishes for its version: that is on no package index.
    """
    wanted = brought("apache-airflow", set()) | {"apache-airflow"}
    lock = (ROOT / "requirements.lock").read_text()
    pins = re.findall(r"(?m)^(([a-z0-9-]+)==[^\\\n]+)", lock)
    return "".join(f"{pin}\n" for pin, name in pins if name in wanted)
