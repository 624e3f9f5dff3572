"""`make airflow`: a local Airflow with our DAGs, until Ctrl-C."""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from rich.text import Text

from shardaudit.cli.command import Reply, Terminal
from shardaudit.model.config.settings import load_settings
from shardaudit.model.errors import ConfigError, ShardauditError
from shardaudit.model.exit_code import ExitCode
from tools.airflow_home import ROOT, USER, password, password_file
from tools.airflow_processes import LocalAirflow

HOME = ROOT / ".airflow"
DEMO = ROOT / ".demo" / "shardaudit.toml"


def chosen_config(given: Path | None) -> Path:
    """The configuration named, else $SHARDAUDIT_CONFIG, ./shardaudit.toml or the demo's.

    Raises:
        ConfigError: there is none, or it cannot be used.
    """
    named = given or os.environ.get("SHARDAUDIT_CONFIG")
    candidates = [Path(named)] if named else [Path("shardaudit.toml"), DEMO]
    found = [file for file in candidates if named or file.exists()]
    if not found:
        wanted = "a shardaudit.toml here, --config FILE, or `make demo` once"
        raise ConfigError("configuration", "none", wanted)
    load_settings(found[0])
    return found[0]


def run(config: Path, *, home: Path, terminal: Terminal) -> int:
    """Starts it, says where it is, and stays until it is interrupted."""
    with LocalAirflow(home, config) as airflow:
        # A file or CI's log is no place for a password.
        shown = password(home) if sys.stdout.isatty() else f"in {password_file(home)}"
        terminal.tell(
            Reply(
                document=None,
                view=Text(
                    f"Airflow    {airflow.url}\nlogin      {USER}\npassword   {shown}\n"
                    f"audits     {config.absolute()}\n\n"
                    "The DAG nightly_audit runs by hand from its page, and at 02:00 UTC as soon as "
                    "it is switched on.\nCtrl-C ends Airflow."
                ),
            )
        )
        while True:
            airflow.require_alive()
            time.sleep(1)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="make airflow", description=__doc__)
    parser.add_argument("--config", type=Path, metavar="FILE", help="the shardaudit.toml to audit")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    terminal = Terminal(as_json=False, debug=False)
    try:
        return run(chosen_config(arguments.config), home=HOME, terminal=terminal)
    except ShardauditError as error:
        return terminal.fail(error, error.exit_code)
    except KeyboardInterrupt:
        return ExitCode.DONE


if __name__ == "__main__":
    sys.exit(main())
