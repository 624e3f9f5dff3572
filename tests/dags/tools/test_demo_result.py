from datetime import UTC, datetime
from io import StringIO

from rich.console import Console

from tools.demo_result import GroupLine, comparison_view, match_planted

UNTIL = datetime(2026, 11, 8, tzinfo=UTC)


def finding(message_id: str, **more: object) -> dict[str, object]:
    return {
        "message_id": message_id,
        "shard_id": "shard-1",
        "kind": "missing",
        "cause": "lost",
        "state": "open",
        "recoverable_until": UNTIL,
        **more,
    }


def text(planted: list[dict[str, object]], found: list[dict[str, object]]) -> str:
    page = StringIO()
    Console(file=page, width=140).print(comparison_view(match_planted(planted, found)))
    return page.getvalue()


def test_both_sides_are_equal_whatever_their_order() -> None:
    twice = finding("b", kind="duplicated", cause="consumer_replay", recoverable_until=None)
    comparison = match_planted([finding("a"), twice], [twice, finding("a")])
    assert comparison.is_equal
    assert comparison.groups == (
        GroupLine("duplicated", "consumer_replay", "open", planted=1, found=1, same=1),
        GroupLine("missing", "lost", "open", planted=1, found=1, same=1),
    )


def test_nothing_planted_and_nothing_found_is_equal() -> None:
    assert match_planted([], []).is_equal


def test_what_was_not_found_is_named() -> None:
    comparison = match_planted([finding("a"), finding("b")], [finding("a")])
    assert comparison.not_found == ("b (missing, lost, open)",)
    assert not comparison.is_equal


def test_what_was_not_planted_is_named() -> None:
    comparison = match_planted([], [finding("x")])
    assert comparison.not_planted == ("x (missing, lost, open)",)
    assert comparison.groups == (GroupLine("missing", "lost", "open", planted=0, found=1, same=0),)


def test_counts_that_cancel_are_not_equal() -> None:
    comparison = match_planted([finding("a")], [finding("b")])
    assert (comparison.groups[0].planted, comparison.groups[0].found) == (1, 1)
    assert comparison.groups[0].same == 0
    assert not comparison.is_equal


def test_another_deadline_is_a_difference() -> None:
    other = finding("a", recoverable_until=datetime(2026, 11, 9, tzinfo=UTC))
    (difference,) = match_planted([finding("a")], [other]).different
    assert "recoverable_until planted 2026-11-08" in difference
    assert "found 2026-11-09" in difference


def test_another_cause_is_a_difference() -> None:
    comparison = match_planted([finding("a")], [finding("a", cause="stuck")])
    assert comparison.different == ("a (missing, lost, open): cause planted lost, found stuck",)


def test_the_page_names_what_differs_and_is_short() -> None:
    page = text([finding(f"id-{n:02}") for n in range(12)], [finding("evil\x1b[2J")])
    assert "12 planted and not found" in page
    assert "id-09" in page
    assert "id-10" not in page
    assert "… and 2 more" in page
    assert "\x1b" not in page


def test_the_page_says_so_when_all_is_found() -> None:
    assert "planted = found" in text([finding("a")], [finding("a")])
