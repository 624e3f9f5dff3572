"""The command line, without Spark."""

import argparse
import errno
import json
import logging
import os
import signal
import socket
import ssl
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from rich.text import Text

from shardaudit.adapters.files.files import StorageError
from shardaudit.adapters.lake.broken_tables import WarehouseUnreadableError
from shardaudit.cli.command import CommandContext, RanBy, Reply, Terminal
from shardaudit.cli.main import main
from shardaudit.model.exit_code import ExitCode

STREAM = """\
[streams.events]
stream_name = "events"
traces = { path = "logs" }
sink = { path = "sink" }
"""
DEAF = """\
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "shardaudit.toml"
    file.write_text('warehouse = "lake"\n[streams]\n')
    return file


@pytest.mark.parametrize(
    "arguments",
    [[], ["adit"], ["simulate", "files"], ["simulate", "files", "--out", "x", "--unknown"]],
)
def test_bad_arguments_end_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == ExitCode.USAGE


def test_help_shows_the_commands_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("ingest", "audit", "findings", "doctor", "simulate"))
    assert "75 failed, try again" in shown


def test_help_of_a_command_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["doctor", "--help"])
    assert "examples:\n  shardaudit doctor" in capsys.readouterr().out


@pytest.mark.parametrize("where", ["before", "behind"])
def test_config_and_json_may_stand_before_and_behind_the_command(
    config: Path, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--config", str(config), "--json"]
    main([*options, "doctor"] if where == "before" else ["doctor", *options])
    checks = {line["check"]: line for line in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["configuration"]["level"] == "ok"
    assert checks["warehouse"]["level"] == "ok"


def test_error_is_one_line_and_a_document_when_json_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    asked = ["simulate", "files", "--out", str(tmp_path / "full"), "--json"]
    assert main(asked) == ExitCode.USAGE
    said = capsys.readouterr()
    assert said.err.startswith("error: --out: found")
    assert said.err.count("\n") == 1
    assert json.loads(said.out)["exit_code"] == ExitCode.USAGE


def test_every_line_of_the_log_is_an_object_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    asked = ["simulate", "files", "--out", str(tmp_path / "full"), "--log", "json", "--debug"]
    assert main(asked) == ExitCode.USAGE
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert lines[-1]["level"] == "ERROR"
    assert lines[-1]["message"].startswith("--out: found")
    assert "Traceback" in lines[-2]["traceback"]
    assert all(datetime.fromisoformat(line["time"]).tzinfo for line in lines)


@pytest.mark.parametrize(
    ("because", "lines"),
    [(None, ["seen"]), ("it reads\nlittle", ["seen", "• on e 1: it reads\\nlittle"])],
)
def test_what_ran_a_command_is_told_beside_its_reply(
    capsys: pytest.CaptureFixture[str], because: str | None, lines: list[str]
) -> None:
    ran_by = RanBy("e 1", because)
    reply = Reply(document={"shards": 2}, view=Text("seen"), ran_by=ran_by)
    Terminal(as_json=False, debug=False).tell(reply)
    assert capsys.readouterr().out.splitlines() == lines
    Terminal(as_json=True, debug=False).tell(reply)
    wanted = {"shards": 2, "engine": "e 1", "engine_because": because}
    assert json.loads(capsys.readouterr().out) == wanted


def test_a_name_from_outside_makes_no_line_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal(as_json=False, debug=False)
    name = "a.jsonl\n2026-11-20T00:00:00Z INFO all is well\x1b[2J\u202e"
    logging.getLogger("shardaudit.test").warning("%s: a\\b", name)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(r"a.jsonl\n2026-11-20T00:00:00Z INFO all is well\x1b[2J\u202e: a\b")


@pytest.mark.parametrize("kind", [WarehouseUnreadableError, StorageError])
def test_cure_is_told_when_too_few_files_may_be_open(
    kind: type[WarehouseUnreadableError | StorageError], capsys: pytest.CaptureFixture[str]
) -> None:
    error = kind("lake", OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
    terminal = Terminal(as_json=False, debug=False)
    assert terminal.fail(error, error.exit_code) == ExitCode.RETRY
    assert (
        "; let a process open more files first, as by `ulimit -n 1024`" in capsys.readouterr().err
    )
    terminal.fail(kind("lake", OSError("no")), ExitCode.RETRY)
    assert "ulimit" not in capsys.readouterr().err


class Raising:
    """A command that ends in an error."""

    EXAMPLES = ""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """None."""

    def run(self, arguments: argparse.Namespace, context: CommandContext) -> Reply:
        del arguments, context
        raise self.error


def test_a_panic_of_delta_rs_is_one_line_with_its_cure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With a dozen files to a process delta-rs panics, as what no `except Exception` catches."""
    panic = type("PanicException", (BaseException,), {})
    said = os.strerror(errno.EMFILE)
    error = panic(f'Failed to create a tokio runtime.: Os {{ message: "{said}" }}')
    assert main(["findings"], lambda _: Raising(error)) == ExitCode.FAILED
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "; let a process open more files first" in said


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (OSError("AWS Error NETWORK_CONNECTION during GetObject operation"), ExitCode.RETRY),
        (OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH)), ExitCode.RETRY),
        (OSError(errno.EIO, os.strerror(errno.EIO)), ExitCode.RETRY),
        (ConnectionResetError(errno.ECONNRESET, "reset"), ExitCode.RETRY),
        (ssl.SSLError(1, "bad record"), ExitCode.RETRY),
        (FileNotFoundError(errno.ENOENT, "no", "lake"), ExitCode.FAILED),
        (PermissionError("lake"), ExitCode.FAILED),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), ExitCode.FAILED),
    ],
)
def test_an_answer_that_did_not_come_passes_and_one_that_stays_is_final(
    error: OSError, wanted: ExitCode, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["findings"], lambda _: Raising(error)) == wanted
    assert capsys.readouterr().err.startswith("error: ")


def test_what_only_ends_the_process_is_no_error() -> None:
    with pytest.raises(SystemExit):
        main(["findings"], lambda _: Raising(SystemExit(4)))


def test_traceback_is_shown_only_when_debug_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["simulate", "files", "--out", str(tmp_path / "x"), "--messages", "x"]
    main(asked)
    assert "Traceback" not in capsys.readouterr().err
    main([*asked, "--debug"])
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.slow
def test_doctor_starts_without_spark() -> None:
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from shardaudit.cli.main import main; main(['doctor', '--json']); "
            "sys.exit('pyspark' in sys.modules)",
        ],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        check=False,
    )
    assert loaded.returncode == 0


@pytest.mark.slow
def test_ctrl_c_is_heard_by_what_a_background_job_started(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        file = tmp_path / "shardaudit.toml"
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        aws = f'[aws]\nregion = "us-east-1"\nendpoint_url = "{address}"\n'
        no_suites = 'expectations = "none"\n'  # or it would take its time to understand them
        file.write_text(f'warehouse = "lake"\n{no_suites}{aws}{STREAM}')
        words = ["-m", "shardaudit.cli.main", "--config", str(file), "doctor"]
        started = subprocess.Popen(
            [sys.executable, "-c", DEAF, sys.executable, *words],
            env=os.environ | {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"},
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        silent.accept()  # it waits for an answer now
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=30)
    assert (started.returncode, b"interrupted" in said) == (ExitCode.RETRY, True)
