"""`make sbom`: what a user of `shardaudit[airflow]` runs, as a CycloneDX document.

The Python packages by requirements.lock, and the jars of Apache Spark by jars.lock, both with their
hashes. Not what only we need: dev tools, the jars of the S3 stand-in.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any  # JSON

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from shardaudit.adapters.engine.jars import coordinates, locked_jars

ROOT = Path(__file__).parents[1]
_SOURCES = ("pyproject.toml", "requirements.lock", "jars.lock")


def write_sbom(sources: Path, sbom: Path) -> None:
    """Writes the document of the locks in a folder of sources; twice the same."""
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder)
        for name in _SOURCES:
            shutil.copyfile(sources / name, draft / name)
        locked = draft / "of-airflow.txt"
        wanted = brought("shardaudit", {"airflow"})
        locked.write_text("".join(_locked((draft / "requirements.lock").read_text(), wanted)))
        options = ["--pyproject", "pyproject.toml", "--output-reproducible", "-o", "sbom.json"]
        command = [sys.executable, "-W", "ignore::UserWarning", "-m", "cyclonedx_py"]
        subprocess.run([*command, "requirements", locked.name, *options], cwd=draft, check=True)
        document = json.loads((draft / "sbom.json").read_text())
    document["components"] += [_jar(name, sha) for name, sha in _jars(sources).items()]
    sbom.parent.mkdir(parents=True, exist_ok=True)
    sbom.write_text(f"{json.dumps(document, indent=2)}\n")


def _jars(sources: Path) -> dict[str, str]:
    return locked_jars("spark", sources / "jars.lock")


def _jar(name: str, sha: str) -> dict[str, Any]:
    """A jar as a component; Maven's coordinates are what scanners look for."""
    group, artifact, version = coordinates(name)
    purl = f"pkg:maven/{group}/{artifact}@{version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "group": group,
        "name": artifact,
        "version": version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": sha}],
    }


def _locked(lock: str, wanted: set[str]) -> Iterator[str]:
    """The entries of the lock, hashes included, of these packages."""
    for entry in re.split(r"(?m)^(?=[a-z0-9])", lock):
        if entry.partition("==")[0] in wanted:
            yield entry


def brought(package: str, extras: set[str]) -> set[str]:
    """The names of all packages that an installed one brings along with these extras of it."""
    found, left = dict[str, set[str]](), [(package, extras)]
    while left:
        name, more = left.pop()
        new = more - found.get(name, set())
        if name not in found or new:
            found[name] = found.get(name, set()) | more
            left += _needed(name, more)
    return found.keys() - {package}


def _needed(package: str, extras: set[str]) -> Iterator[tuple[str, set[str]]]:
    try:
        lines = requires(package) or []
    except PackageNotFoundError:  # for other machines, or overridden to nothing (decision 002)
        return
    for wanted in map(Requirement, lines):
        asked = [{"extra": extra} for extra in extras | {""}]
        if wanted.marker is None or any(map(wanted.marker.evaluate, asked)):
            yield canonicalize_name(wanted.name), wanted.extras


def main() -> int:
    """The command: of this tree as it is."""
    parser = argparse.ArgumentParser(prog="make sbom", description=__doc__)
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    write_sbom(ROOT, out)
    sys.stdout.write(f"{out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
