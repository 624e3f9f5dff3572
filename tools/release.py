"""`make dist`: what a release is made of, from the last commit; made twice it is the same.

The wheel and the sdist; `sbom.cdx.json`, the Python packages that `shardaudit[airflow]` brings and
the jars, by their locks; and SHA256SUMS.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tools.sbom import ROOT, write_sbom

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
        write_sbom(sources, out / SBOM)
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
