"""What a person reads of a plan and of a run."""

import io
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console

from shardaudit.backfill.backfill_view import SHOWN_WINDOWS, plan_view, run_view
from shardaudit.backfill.proposal import (
    PlanReport,
    RunReport,
    WindowLine,
    beyond_sample,
    lands_filtered,
    on_its_way,
    plan_markdown,
)
from shardaudit.backfill.rules.planned import WindowState
from shardaudit.backfill.rules.ranges import ASKED_FOR
from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import WATERMARKS
from shardaudit.model.tables.backfill_tables import BACKFILL_GAPS
from shardaudit.model.watermark import Held, Hold, holds_as_json
from shardaudit.report.plain import instant
from tests.builders import SHARD, T0
from tests.page_warehouse import write_rows
from tests.unit.backfill.windows import stored_window

LINE = WindowLine(
    window_id="00001",
    shard_id=SHARD,
    window_start=T0,
    window_end=T0 + timedelta(minutes=7),
    start_sequence_number="1",
    end_sequence_number="2",
    because="lost",
    expected_ids=12,
    estimated_records=1000,
    estimated_bytes=10 * 2**20,
    estimated_calls=3,
    estimated_seconds=10.0,
    deadline=T0 + timedelta(hours=24),
    feasible=True,
    state=WindowState.PLANNED,
    read_records=None,
    merged_rows=None,
    expired_from=None,
    expired_to=None,
    error=None,
)
PLAN = PlanReport(
    plan_id="events-0123456789ab",
    stream="events",
    as_of=T0 + timedelta(hours=20),
    windows=(LINE,),
    stages=("approve: a person", "verify: an audit"),
    minutes=1.5,
    extension=None,
    stuck_left_out=0,
    before_run=None,
)


def shown(view: object, *, width: int = 160) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(view)
    return console.export_text()


def test_a_narrow_terminal_shows_numbers_whole() -> None:
    line = replace(LINE, expected_ids=12_345, estimated_bytes=110_129 * 2**20)
    text = shown(plan_view(replace(PLAN, windows=(line,))), width=100)
    numbers = [row.split()[-3:] for row in text.splitlines()]
    assert ["12,345", "110,129", "10.0"] in numbers


def test_plan_shows_price_deadline_stages_and_the_command() -> None:
    text = shown(plan_view(PLAN))
    for words in ("12 messages in 1 window;", "at most 10 MiB in 3 calls", "4 h 0 min"):
        assert words in text
    assert "approve: a person" in text
    assert "backfill run --plan events-0123456789ab --approve-as" in text


def test_plan_says_how_to_make_it_in_time() -> None:
    late = replace(PLAN, windows=(replace(LINE, feasible=False),), extension=timedelta(hours=30))
    assert "extend the stream's retention to 30 h now" in shown(plan_view(late))
    assert "is gone" in shown(plan_view(replace(late, extension=None)))


def test_plan_says_what_it_leaves_out() -> None:
    text = shown(plan_view(replace(PLAN, windows=(), stuck_left_out=7, notes=("by nobody",))))
    assert "Nothing of events to bring back" in text
    assert "7 messages behind a stopped shard left out" in text
    assert "• by nobody" in text


def test_plan_says_what_is_left_to_one_that_was_handed_over() -> None:
    text = shown(plan_view(replace(PLAN, windows=(), handed_over=("events-1",))))
    assert "Nothing of events to bring back" in text
    assert "backfill verify --plan events-1 says" in text


def test_run_shows_what_did_not_end_well_first() -> None:
    bad = replace(LINE, window_id="00099", state=WindowState.INCOMPLETE, error="throttled\x1b[2J")
    gone = replace(
        LINE, window_id="00050", state=WindowState.EXPIRED, expired_from=T0, expired_to=T0
    )
    good = tuple(
        replace(LINE, window_id=f"{n:05}", state=WindowState.VERIFIED) for n in range(SHOWN_WINDOWS)
    )
    report = RunReport(
        "p", "events", "ann", (*good, gone, bad), "audit-1", 12, 3, 1, "Apache Spark 4.1.4"
    )
    text = shown(run_view(report))
    assert text.index("00099") < text.index("00050") < text.index("00002")
    for words in (
        *("still missing: 1", "approved by ann", "done by Apache Spark 4.1.4"),
        *("proven by audit audit-1", "… 2 more"),
    ):
        assert words in text
    assert "\x1b[2J" not in text
    assert not report.is_over


def test_run_of_a_plan_that_was_over_says_so() -> None:
    done = replace(LINE, state=WindowState.VERIFIED)
    text = shown(
        run_view(RunReport("p", "events", "ann", (done,), None, 0, 0, 0, "Apache Spark 4.1.4"))
    )
    assert "nothing was done" in text
    assert "brought back" not in text


def test_replay_says_how_it_is_proven() -> None:
    read = replace(LINE, state=WindowState.MERGED)
    text = shown(
        run_view(RunReport("p", "events", "ann", (read,), None, 0, 0, 0, "Apache Spark 4.1.4"))
    )
    assert "not proven yet: shardaudit backfill verify --plan p" in text
    assert "nothing was done" not in text


def test_plan_says_what_to_set_before_it_is_run() -> None:
    text = shown(plan_view(replace(PLAN, before_run="streams.events.sink.exclusive: found False")))
    assert "Before it can run" in text
    assert "streams.events.sink.exclusive: found False" in text
    assert "Before it can run" not in shown(plan_view(PLAN))


@pytest.mark.parametrize(
    ("because", "has_gap", "names"),
    [
        ("lost", False, None),
        ("lost", True, "thin"),  # what the other one left out is known
        (ASKED_FOR, False, "valid, thin"),
    ],
)
def test_plan_says_of_which_filters_it_lands_what_they_left_out(
    tmp_path: Path, because: str, has_gap: bool, names: str | None
) -> None:
    route = {
        "valid": {"after": ["producer"], "share": "traced"},
        "thin": {"after": ["valid"], "share": 0.5},
        "writer": {"after": ["thin"]},
    }
    place = {"path": str(tmp_path)}
    events = {"stream_name": "e", "traces": place, "sink": place, "locations": route}
    settings = Settings.model_validate({"warehouse": str(tmp_path), "streams": {"events": events}})
    window = stored_window(because=because)
    if has_gap:
        key = {"plan_id": window.plan_id, "window_id": "00001", "stream": "events"}
        write_rows(tmp_path, BACKFILL_GAPS, [key | {"shard_id": "s", "bucket_start": T0}])
    said = lands_filtered(settings, [window])
    assert (said is None) == (names is None)
    for text in (
        plan_markdown([window], as_of=T0, notes=[said]),
        shown(plan_view(replace(PLAN, lands_filtered=said))),
    ):
        assert ("left out by design is landed" in text) == (names is not None)
        assert names is None or f"what {names} left out" in text


@pytest.mark.parametrize(("rate", "takes_all"), [(0.25, False), (0.25, True), (1.0, False)])
def test_plan_and_run_of_a_sample_say_what_they_do_not_bring_back(
    tmp_path: Path, rate: float, *, takes_all: bool
) -> None:
    place = {"path": str(tmp_path)}
    events = {"stream_name": "e", "traces": place, "sink": place, "sample_rate": rate}
    settings = Settings.model_validate({"warehouse": str(tmp_path), "streams": {"events": events}})
    window = stored_window(takes_all=takes_all)
    said = beyond_sample(settings, [window])
    ran = RunReport("p", "events", "ann", (LINE,), "audit-1", 12, 0, 0, "e", beyond_sample=said)
    for text in (
        plan_markdown([window], as_of=T0, notes=[said]),
        shown(plan_view(replace(PLAN, beyond_sample=said))),
        shown(run_view(ran)),
    ):
        assert ("of a sample of 0.25" in text) == (rate < 1 and not takes_all)


MIN = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("audited_min", "holds", "since_min"),
    [
        (60, [], None),
        (10, [], 10),
        (60, [Hold(T0 + 20 * MIN, T0 + 40 * MIN, Held.PENDING)], 20),
        (60, [Hold(T0 - 20 * MIN, T0 + 5 * MIN, Held.CHANGED)], 0),
        (60, [Hold(T0 - 20 * MIN, T0, Held.PENDING)], None),
        (60, [Hold(T0 + 20 * MIN, T0 + 40 * MIN, Held.THIN)], None),
        (None, [], 0),
    ],
)
def test_plan_by_hand_says_from_when_on_messages_may_land_by_themselves(
    tmp_path: Path, audited_min: int | None, holds: list[Hold], since_min: int | None
) -> None:
    place = {"path": str(tmp_path)}
    events = {"stream_name": "e", "traces": place, "sink": place}
    settings = Settings.model_validate({"warehouse": str(tmp_path), "streams": {"events": events}})
    if audited_min is not None:
        record = {"holds": holds_as_json(holds), "audited_until": T0 + audited_min * MIN}
        write_rows(tmp_path, WATERMARKS, [{"stream": "events", "shard_id": "s"} | record])
    sent = {"sent_from": T0, "sent_to": T0 + 30 * MIN}
    windows = [stored_window(because=ASKED_FOR, shard_id=one, **sent) for one in ("s", "unseen")]
    said = on_its_way(settings, windows)
    assert on_its_way(settings, [stored_window(**sent)]) is None
    assert (said is None) == (since_min is None)
    for text in (
        plan_markdown(windows, as_of=T0, notes=[said]),
        shown(plan_view(replace(PLAN, on_its_way=said)), width=400),
    ):
        assert said is None or instant(T0 + (since_min or 0) * MIN) in said
        assert said is None or said in text
