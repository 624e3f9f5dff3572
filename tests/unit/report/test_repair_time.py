"""How a retention compares with the way from a loss to its repair."""

from datetime import timedelta

import pytest

from shardaudit.report.next_steps import too_short

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("retention", "share", "is_told"),
    [(24, 0.5, True), (49, 0.5, True), (50, 0.5, False), (168, 0.5, False), (168, 0.05, True)],
)
def test_a_day_until_the_next_audit_and_the_reading_must_fit(
    retention: int, share: float, is_told: bool
) -> None:
    assert (too_short(retention * HOUR, read_share=share) is not None) == is_told


def test_the_sentence_has_the_numbers() -> None:
    told = str(too_short(24 * HOUR, read_share=0.5))
    assert "keeps records for 1 d 0 h" in told
    assert "at most 1 d 1 h to read" in told
    assert "are 2 d 1 h" in told
