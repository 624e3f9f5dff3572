"""The second door, for tests and the simulator: time, throttling, empty pages, faults.

`POST /_control` with a JSON object changes what it names, `GET /_control` tells what holds:

| key | value |
|---|---|
| `clock` | `{"hold": T, "step_ms": 1.5}`, `{"run_from": T}` or `"machine"`; T: ISO 8601 with zone |
| `throttle` | true: the quotas of a shard hold, by the server's clock |
| `empty_pages` | n: every n-th GetRecords of a shard brings nothing; 0: none does |
| `iterator_ttl_s`, `token_ttl_s` | life of a shard iterator and of a NextToken |
| `transition_s` | how long a stream is CREATING or UPDATING, in the machine's seconds |
| `subscription_s` | how long a subscription to a shard lives, in the machine's seconds |
| `faults` | a list of `{"operation", "error", "times"}`, see `Fault` |
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime

from shardaudit.model.errors import ConfigError
from shardaudit.model.window import parse_instant
from shardaudit.simulate.stand_in.requests import ApiError

TTL_S = 300.0  # Kinesis: a shard iterator, a NextToken and a subscription live five minutes


class Clock:
    """Milliseconds since the epoch, from a reading of the machine's clock that is handed in.

    While held, time stands still but for `step_ms` after each record that is put: so one batch
    can carry records that arrived over minutes.
    """

    def __init__(self, read_seconds: Callable[[], float]) -> None:
        self._read_seconds = read_seconds
        self._offset_ms = 0.0
        self._held_ms: float | None = None
        self._step_ms = 0.0

    @property
    def is_held(self) -> bool:
        """Whether time stands still."""
        return self._held_ms is not None

    def machine_ms(self) -> int:
        """The machine's time, wherever ours was moved."""
        return int(self._read_seconds() * 1000)

    def now_ms(self) -> int:
        """The time at which everything happens for a client."""
        if self._held_ms is not None:
            return int(self._held_ms)
        return int(self._read_seconds() * 1000 + self._offset_ms)

    def tick(self) -> None:
        """A record was put: a held clock goes one step on."""
        if self._held_ms is not None:
            self._held_ms += self._step_ms

    def hold(self, at_ms: float, *, step_ms: float = 0.0) -> None:
        """Stands still at that time."""
        self._held_ms, self._step_ms = at_ms, step_ms

    def run_from(self, at_ms: float) -> None:
        """Runs at the machine's pace from that time on."""
        self._held_ms = None
        self._offset_ms = at_ms - self._read_seconds() * 1000

    def follow_machine(self) -> None:
        """Is the machine's clock again."""
        self._held_ms, self._offset_ms = None, 0.0


@dataclass(slots=True)
class Fault:
    """An operation that fails the next `times` times, before it did anything.

    With `lose_answer` it is done and the connection closed without an answer, as when the network
    fails. With `per_record` PutRecords succeeds and that many of its records fail.
    """

    operation: str
    error: str = "InternalFailure"
    status: int = 500
    times: int = 1
    lose_answer: bool = False
    per_record: bool = False


@dataclass(slots=True)
class Switches:
    """What can be switched besides the clock."""

    throttle: bool = False
    empty_pages: int = 0
    iterator_ttl_s: float = TTL_S
    token_ttl_s: float = TTL_S
    transition_s: float = 0.05
    subscription_s: float = TTL_S
    faults: tuple[Fault, ...] = field(default_factory=tuple)


class Control:
    """The server's clock and switches."""

    def __init__(self, read_seconds: Callable[[], float]) -> None:
        self.clock = Clock(read_seconds)
        self.switches = Switches()

    def describe(self) -> dict[str, object]:
        """What holds now."""
        switches = {f.name: getattr(self.switches, f.name) for f in fields(Switches)}
        faults = [{f.name: getattr(x, f.name) for f in fields(Fault)} for x in self.switches.faults]
        now = datetime.fromtimestamp(self.clock.now_ms() / 1000, UTC)
        return {
            **switches,
            "faults": faults,
            "now": now.isoformat(timespec="milliseconds"),
            "held": self.clock.is_held,
        }

    def change(self, wanted: Mapping[str, object]) -> None:
        """Sets what is named, all of it or, when something is wrong, nothing.

        Raises:
            ApiError: an unknown key or a value that cannot be used.
        """
        changes = {key: value for key, value in wanted.items() if key != "clock"}
        known = {f.name: type(getattr(Switches(), f.name)) for f in fields(Switches)}
        for key, value in changes.items():
            if key not in known:
                raise _refused(key, value, f"one of clock, {', '.join(known)}")
            if key == "faults":
                changes[key] = _faults(value)
            elif not _fits(value, known[key]):
                raise _refused(key, value, known[key].__name__)
        if "clock" in wanted:
            self._set_clock(wanted["clock"])
        self.switches = replace(self.switches, **changes)  # type: ignore[arg-type] # checked above

    def take_fault(self, operation: str, *, per_record: bool = False) -> Fault | None:
        """The fault that strikes this call (or record), counted down; None when there is none."""
        for fault in self.switches.faults:
            wanted = fault.operation == operation and fault.per_record == per_record
            if wanted and fault.times > 0:
                fault.times -= 1
                return fault
        return None

    def _set_clock(self, wanted: object) -> None:
        form = '"machine", {"hold": T, "step_ms": N} or {"run_from": T}'
        if wanted == "machine":
            return self.clock.follow_machine()
        if not isinstance(wanted, dict) or not wanted.keys() <= {"hold", "step_ms", "run_from"}:
            raise _refused("clock", wanted, form)
        step_ms = wanted.get("step_ms", 0.0)
        if not _fits(step_ms, float) or ("hold" in wanted) == ("run_from" in wanted):
            raise _refused("clock", wanted, form)
        if "hold" in wanted:
            return self.clock.hold(_instant_ms(wanted["hold"]), step_ms=step_ms)
        return self.clock.run_from(_instant_ms(wanted["run_from"]))


def _fits(value: object, kind: type) -> bool:
    if kind is bool:
        return isinstance(value, bool)
    return isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)


def _instant_ms(value: object) -> float:
    try:
        return parse_instant(str(value), where="clock").timestamp() * 1000
    except ConfigError as error:
        raise ApiError("ValidationException", str(error)) from error


def _faults(value: object) -> tuple[Fault, ...]:
    if not isinstance(value, list):
        raise _refused("faults", value, "a list")
    known = {f.name for f in fields(Fault)}
    faults = []
    for fault in value:
        if not isinstance(fault, dict) or "operation" not in fault or not fault.keys() <= known:
            raise _refused("faults", fault, f"operation and any of {', '.join(sorted(known))}")
        faults.append(Fault(**fault))
    return tuple(faults)


def _refused(key: str, value: object, wanted: str) -> ApiError:
    return ApiError("ValidationException", f"{key}: found {value!r}, wanted {wanted}")
