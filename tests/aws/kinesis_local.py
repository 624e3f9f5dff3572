"""kinesis-local from npm: the only other stand-in that reshards and lists shards rightly."""

import hashlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shardaudit.simulate.s3proxy import free_port

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".cache" / "npm"
PACKAGE, VERSION = "kinesis-local", "0.6.2"
MAIN_SHA256 = "6d46874682bffd8c06a3ca90735e292d144626541d1450bc43326557b3dda414"
_TRIES, _PAUSE_SECONDS = 300, 0.1
_QUICK = ("CREATE_STREAM", "SPLIT_SHARD", "MERGE_SHARDS", "UPDATE_SHARD_COUNT")


def missing_tool() -> str | None:
    """The tool that is needed and not there."""
    return next((tool for tool in ("node", "npm") if shutil.which(tool) is None), None)


@contextmanager
def kinesis_local() -> Iterator[str]:
    """The address of a running kinesis-local, on free ports of 127.0.0.1."""
    package = _installed()
    plain, secure = free_port(), free_port()
    settings = {
        "KINESIS_MOCK_PLAIN_PORT": str(plain),
        "KINESIS_MOCK_TLS_PORT": str(secure),
        "LOG_LEVEL": "ERROR",
        **{f"{name}_DURATION": "20ms" for name in _QUICK},
    }
    process = subprocess.Popen(
        [_tool("node"), "--require", str(ROOT / "tests/aws/hold_to_loopback.cjs"), "main.js"],
        cwd=package,  # it looks for its certificate there
        env={**os.environ, **settings},
        stdout=subprocess.DEVNULL,
    )
    try:
        _wait_until_open(process, plain)
        yield f"http://127.0.0.1:{plain}"
    finally:
        process.terminate()
        process.wait(10)


def _installed() -> Path:
    package = FOLDER / "node_modules" / PACKAGE
    if not (package / "main.js").exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        quiet = ("--no-audit", "--no-fund", "--no-save", "--ignore-scripts")
        command = [_tool("npm"), "install", *quiet, "--prefix", str(FOLDER), f"{PACKAGE}@{VERSION}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    digest = hashlib.sha256((package / "main.js").read_bytes()).hexdigest()
    assert digest == MAIN_SHA256, f"{PACKAGE} is not the one that was reviewed: {digest}"
    return package


def _tool(name: str) -> str:
    path = shutil.which(name)
    assert path is not None
    return path


def _wait_until_open(process: "subprocess.Popen[bytes]", port: int) -> None:
    for _ in range(_TRIES):
        assert process.poll() is None, "kinesis-local ended before it answered"
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(_PAUSE_SECONDS)
    raise AssertionError("kinesis-local does not answer")
