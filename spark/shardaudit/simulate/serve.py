"""Runs the Kinesis stand-in until it is told to stop.

`shardaudit simulate serve` for people; `python -m shardaudit.simulate.serve` is the child process
of commands that need it, and starts without what they import.
"""

import argparse
import signal
import sys
import threading
from collections.abc import Iterable
from types import FrameType

from shardaudit.adapters.clock import now
from shardaudit.model.errors import ShardauditError
from shardaudit.model.exit_code import ExitCode
from shardaudit.simulate.stand_in.account import Account
from shardaudit.simulate.stand_in.server import StandIn


def serve(port: int, *, beside: Iterable[str] = (), until_input_ends: bool = False) -> int:
    """Says the address on standard output, then answers until SIGINT or SIGTERM.

    `beside`: lines about other servers, to be said after it.
    """
    with StandIn(Account(lambda: now().timestamp()), port=port) as server:
        _stop_on_signals(server)  # before anybody can know that it is there
        sys.stdout.writelines(f"{line}\n" for line in (server.url, *beside))
        sys.stdout.flush()
        if until_input_ends:
            threading.Thread(target=_stop_after_input, args=(server,), daemon=True).start()
        server.serve_forever()
    return ExitCode.DONE


def _stop_on_signals(server: StandIn) -> None:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        # shutdown() waits for the loop that this very thread runs.
        threading.Thread(target=server.shutdown, daemon=True).start()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


def _stop_after_input(server: StandIn) -> None:
    sys.stdin.read()  # ends when the process that started us does
    server.shutdown()


def main() -> int:
    """The child process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--until-input-ends", action="store_true")
    args = parser.parse_args()
    try:
        return serve(args.port, until_input_ends=args.until_input_ends)
    except ShardauditError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
