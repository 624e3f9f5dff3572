"""`make dist`: what a release is made of, from the last commit; made twice it is the same.

The wheel and the sdist; `sbom.cdx.json`, the Python packages that `shardaudit[airflow]` brings, by
requirements.lock (a CycloneDX document; the jars are in jars.lock, which the wheel holds); and
SHA256SUMS.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
SBOM, SUMS = "sbom.cdx.json", "SHA256SUMS"


def release(out: Path) -> None:
    """Writes the files of a release into a folder, which holds nothing else afterwards."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    env = os.environ | {"SOURCE_DATE_EPOCH": _git("log", "-1", "--format=%ct").decode().strip()}
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder)
        # Of what is committed: nothing that lies about gets in.
        _run("tar", "-x", cwd=sources, given=_git("archive", "HEAD"))
        _python("hatchling", "build", "-d", str(out.absolute()), cwd=sources, env=env)
        _write_sbom(sources, out / SBOM, env)
    sums = [f"{_sha256(file)}  {file.name}\n" for file in sorted(out.iterdir())]
    (out / SUMS).write_text("".join(sums))


def _git(*words: str) -> bytes:
    return _run("git", *words, cwd=ROOT)


def _python(module: str, *words: str, cwd: Path, env: Mapping[str, str]) -> None:
    _run(sys.executable, "-W", "ignore::UserWarning", "-m", module, *words, cwd=cwd, env=env)


def _run(*words: str, cwd: Path, env: Mapping[str, str] | None = None, given: bytes = b"") -> bytes:
    """What a command writes; what it says beside that is for the terminal."""
    done = subprocess.run(words, cwd=cwd, env=env, input=given, stdout=subprocess.PIPE, check=True)
    return done.stdout


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _write_sbom(sources: Path, sbom: Path, env: Mapping[str, str]) -> None:
    wanted = brought("shardaudit", {"airflow"})
    locked = sources / "of-airflow.txt"
    locked.write_text("".join(_locked((sources / "requirements.lock").read_text(), wanted)))
    options = ["--pyproject", "pyproject.toml", "--output-reproducible", "-o", str(sbom.absolute())]
    _python("cyclonedx_py", "requirements", locked.name, *options, cwd=sources, env=env)


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
    """The command."""
    parser = argparse.ArgumentParser(prog="make dist", description=__doc__)
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    release(out)
    sys.stdout.write((out / SUMS).read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
