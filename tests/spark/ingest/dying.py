"""A warehouse that dies in the middle of a write."""

from shardaudit.model.errors import LockLostError


class Dying:
    """Asked before each write; dies before one of them."""

    def __init__(self, before: int) -> None:
        self.left, self.calls = before, 0

    def __call__(self) -> None:
        self.calls += 1
        self.left -= 1
        if self.left == 0:
            raise LockLostError("here", "a test")
