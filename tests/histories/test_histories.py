"""Random days: every stop and every hole is reported, no healthy day is disturbed."""

import pytest

from tests.unit.watch.outcomes import outcomes

COLUMNS = ("histories", "observations", "stops", "reported", "at once", "long stops", "told")
HOLES = ("holes", "holes told", "hidden", "false holes")


@pytest.mark.parametrize("days", [50, pytest.param(200, marks=pytest.mark.drill)])
def test_every_stop_and_hole_is_reported_and_no_healthy_history_is_disturbed(
    days: int, capsys: pytest.CaptureFixture[str]
) -> None:
    table = outcomes(days)
    names = (*COLUMNS, *HOLES, "not quiet", "alarms", "messages")
    with capsys.disabled():
        print("\n" + " ".join(f"{name:>12}" for name in ("kind", *names)))  # noqa: T201 - the table
        for kind, count in table.items():
            print(" ".join(f"{text!s:>12}" for text in (kind, *(count[n] for n in names))))  # noqa: T201
    assert table["stop"]["stops"] > days / 4
    assert sum(count["holes"] for count in table.values()) > days
