"""Which Java a Spark of this machine would start."""

import os
import re
import shutil
import subprocess
from pathlib import Path

SUPPORTED = (17, 21)  # what Spark 4.1 is tested with
INSTALL = (
    "apt-get install openjdk-17-jre-headless (Debian), or brew install openjdk@17 and "
    'export JAVA_HOME="$(brew --prefix openjdk@17)" (macOS)'
)


def java_version() -> int | None:
    """The major version of the Java that Spark finds: `JAVA_HOME`, else the path; None: no Java."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        return None
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    return int(found[1]) if found and answer.returncode == 0 else None
