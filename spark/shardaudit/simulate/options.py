"""The arguments of `shardaudit simulate`, and what they mean."""

import argparse
import os
from pathlib import Path

from shardaudit.model.errors import ConfigError
from shardaudit.model.window import parse_instant
from shardaudit.simulate.s3proxy import S3Credentials, s3_proxy
from shardaudit.simulate.scenario import DEFAULT_MESSAGES, FAULTS, Scenario, default_faults
from shardaudit.simulate.serve import serve

FAULT_HELP = "faults (--fault NAME=COUNT, may be given again and again):\n" + "\n".join(
    f"  {name:<13} {text}" for name, (_, text) in FAULTS.items()
)
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Gives the parser the three actions and their arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    run = _action(
        actions, "run", "put messages on a stream, read them, write traces and a Delta sink"
    )
    _add_scenario(run)
    run.add_argument(
        "--endpoint-url",
        metavar="URL",
        help="a Kinesis endpoint, as `simulate serve` says it; default: one of our own, "
        "started and stopped here",
    )
    run.add_argument(
        "--s3",
        action="store_true",
        help="traces and sink on an S3 server over FOLDER/s3, started and stopped here",
    )
    files = _action(
        actions, "files", "write the same straight to files, without a stream: for large volumes"
    )
    _add_scenario(files)
    files.add_argument(
        "--sink-format", choices=("delta", "parquet"), default="delta", help="default: delta"
    )
    _add_serve(actions)


def scenario_of(args: argparse.Namespace) -> Scenario:
    """The scenario that the arguments name; every fault when none is named.

    Raises:
        ConfigError: a value that cannot be used.
    """
    messages = _whole("--messages", args.messages)
    faults = dict(_fault(text) for text in args.fault)
    if not args.fault and not args.no_faults:
        faults = default_faults(messages)
    return Scenario(
        stream=args.stream,
        seed=args.seed,
        messages=messages,
        shards=args.shards,
        start=parse_instant(args.start, where="--start"),
        hours=args.hours,
        faults=faults,
    )


def serve_from(args: argparse.Namespace) -> int:
    """Serves Kinesis, and S3 when asked, until it is stopped.

    Raises:
        ConfigError: S3 is wanted and the environment names no credentials for it.
    """
    if args.s3 is None:
        return serve(args.port)
    keys = [os.environ.get(name, "") for name in _KEYS]
    if not all(keys):
        raise ConfigError("--s3", "no credentials", f"{' and '.join(_KEYS)} in the environment")
    with s3_proxy(args.s3, port=args.s3_port, credentials=S3Credentials(*keys)) as s3:
        return serve(args.port, beside=(f"S3 {s3.url}",))


def _action(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, text: str
) -> argparse.ArgumentParser:
    epilog = FAULT_HELP if name != "serve" else None
    return actions.add_parser(
        name,
        help=text,
        description=text,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_scenario(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="gets traces/, sink/, planted.parquet, simulation.json and shardaudit.toml; "
        "must be empty or absent",
    )
    parser.add_argument(
        "--messages",
        default=str(DEFAULT_MESSAGES),
        metavar="N",
        help=f"how many, also as 1e7; default: {DEFAULT_MESSAGES:,}",
    )
    parser.add_argument("--shards", type=int, default=8, metavar="N", help="default: 8")
    parser.add_argument(
        "--hours", type=int, default=24, metavar="N", help="length of the window; default: 24"
    )
    parser.add_argument(
        "--start",
        default="2026-11-01T00:00:00Z",
        metavar="T",
        help="start of the window, with a zone; default: 2026-11-01T00:00:00Z",
    )
    parser.add_argument(
        "--seed", type=int, default=7, metavar="N", help="same seed, same messages; default: 7"
    )
    parser.add_argument("--stream", default="events", metavar="NAME", help="default: events")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="NAME=COUNT",
        help="only the named faults; default: every fault, in proportion to --messages",
    )
    chosen.add_argument("--no-faults", action="store_true", help="a stream where all is well")


def _add_serve(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = _action(
        actions, "serve", "answer as Kinesis does, on 127.0.0.1, until Ctrl-C; says its address"
    )
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="default: any that is free"
    )
    parser.add_argument(
        "--s3",
        type=Path,
        metavar="FOLDER",
        help="serve this folder as S3 too, for the credentials in "
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    )
    parser.add_argument(
        "--s3-port", type=int, default=0, metavar="N", help="default: any that is free"
    )


def _fault(text: str) -> tuple[str, int]:
    name, equals, count = text.partition("=")
    if name not in FAULTS or not equals:
        raise ConfigError("--fault", text, f"NAME=COUNT, NAME one of {', '.join(FAULTS)}")
    return name, _whole(f"--fault {name}", count)


def _whole(where: str, text: str) -> int:
    wanted = "a whole number, as 200000 or 1e7"
    try:
        number = float(text)
    except ValueError as error:
        raise ConfigError(where, text, wanted) from error
    if not 0 <= number <= 2**53 or number != int(number):
        raise ConfigError(where, text, wanted)
    return int(number)
