"""The server's time: the machine's, moved by an offset, or held still."""

from collections.abc import Callable


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
