"""The days of the ledger that are summed up once: an audit says the same as if none were kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from shardaudit.audit import kept_days, window_ledger
from shardaudit.audit.kept_days import days_of
from shardaudit.model.tables.all_tables import OF_LEDGER
from shardaudit.model.tables.audit_tables import FINDINGS, FINGERPRINTS
from shardaudit.model.tables.ledger_tables import LEDGER_HOURS
from shardaudit.model.verdict import State
from shardaudit.model.window import Window
from shardaudit.store.maintain import maintain
from shardaudit.store.warehouse import Warehouse
from tests.builders import T0, Line, sequence, shard, sink_row, trace_line
from tests.engines.contents import OF_THE_RUN, contents
from tests.spark.audit.nights import DAY, DAY_S, HOUR, audited, of_day, sound_days
from tests.spark.lake import Lake

NIGHTS = 5
CLOCK = OF_THE_RUN | {"judged_at"}
WEEKS = [0, *(pytest.param(n, marks=[pytest.mark.drill]) for n in range(1, 20))]


@contextmanager
def nothing_kept() -> Iterator[None]:
    """As it was before days were kept."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kept_days, "_known_days", lambda *_: set[date]())
        yield


def kept(lake: Lake) -> dict[date, tuple[str, int]]:
    """By kept day the digest of its files, and how many of its cells are not alike."""
    found = dict[date, tuple[str, int]]()
    for row in lake.rows(LEDGER_HOURS):
        _, before = found.get(row.sent_day, ("", 0))
        found[row.sent_day] = (row.day_digest, before + len(row.unequal or ()))
    return found


class Week:
    """A stream's days, in which anything may happen to messages of any day before."""

    def __init__(self, lake: Lake, seed: int) -> None:
        self.lake, self.chance, self.landed = lake, Random(seed), list[int]()  # noqa: S311 - to be repeated
        self.held_back: list[tuple[int, Line, Line]] = []  # the day on which they come

    def passes(self, day: int) -> None:
        """One more day."""
        traces, rows = list[Line](), list[Line]()
        for hour in range(0, DAY_S, 3600):
            if self.chance.random() < 0.1:
                continue  # a quiet hour
            number = day * DAY_S + hour + self.chance.randrange(3600)
            self._sent(number, day, traces, rows)
        due = [one for one in self.held_back if one[0] <= day]
        self.held_back = [one for one in self.held_back if one[0] > day]
        traces += [trace for _, trace, _ in due if trace]
        rows += [row for _, _, row in due if row]
        self.lake.log(f"day-{day}.jsonl", traces)
        self.lake.land(rows)
        if self.landed and self.chance.random() < 0.4:  # rows leave the sink, of any day
            ids = ", ".join(f"'m{n}'" for n in self.chance.sample(self.landed, 2))
            self.lake.sql(f"DELETE FROM SINK WHERE message_id IN ({ids})")  # noqa: S608 - our own

    def _sent(self, number: int, day: int, traces: list[Line], rows: list[Line]) -> None:
        of = {"shard_id": shard(number % 2)}
        trace, row = trace_line(number, **of), sink_row(number, **of)
        fate, later = self.chance.random(), day + self.chance.randrange(1, 4)
        self.landed.append(number)
        if fate < 0.05:  # lost
            traces.append(trace)
        elif fate < 0.1:  # doubled
            traces.append(trace)
            rows += [row, row]
        elif fate < 0.15:  # its row comes days later
            traces.append(trace)
            at = T0 + later * DAY
            self.held_back.append((later, {}, row | {"landed_at": at}))
        elif fate < 0.2:  # its trace is found days later
            rows.append(row)
            self.held_back.append((later, trace, {}))
        elif fate < 0.25:  # of a device that was offline
            then, came = T0 + later * DAY + HOUR, {"sequence_number": sequence(later * DAY_S + 60)}
            trace, row = trace | came, row | came | {"landed_at": then}
            self.held_back.append((later, trace | {"acked_at": then.isoformat()}, row))
        elif fate < 0.28:  # sent again, with another time
            again = trace_line(number + 300, **of) | {"message_id": f"m{number}"}
            traces += [trace, again]
            rows.append(row)
        else:
            traces.append(trace)
            rows.append(row)


@pytest.mark.parametrize("seed", WEEKS)
def test_an_audit_says_the_same_as_if_nothing_were_kept(
    lake: Lake, spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    lake.settings["bucket"] = timedelta(minutes=[1, 90][seed % 2])
    paths = {"kept": tmp_path / "warehouse", "anew": tmp_path / "anew"}
    houses = {name: Warehouse(spark, str(path)) for name, path in paths.items()}
    week = Week(lake, seed)
    for day in range(NIGHTS):
        week.passes(day)
        since = week.chance.randrange(max(0, day - 1), day + 1)
        lake.warehouse = houses["kept"]
        audited(lake, day, since=since)
        with nothing_kept():
            lake.warehouse = houses["anew"]
            audited(lake, day, since=since)
        for table in OF_LEDGER:
            if table is not LEDGER_HOURS:
                one, other = (contents(p, table, without=CLOCK) for p in paths.values())
                assert one == other, f"night {day}: {table.name}"
    lake.warehouse = houses["kept"]
    assert len(kept(lake)) >= NIGHTS - 2
    assert any(unequal for _, unequal in kept(lake).values())


class DiedError(Exception):
    """A command that ended there."""


def died(*_: object, **__: object) -> None:
    raise DiedError


def test_what_came_is_told_though_the_audit_that_first_saw_it_died(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound_days(lake, 2)
    lake.log("lacks.jsonl", [trace_line(7300)])
    audited(lake, 1, since=0)
    [finding] = lake.rows(FINDINGS)
    assert (finding.message_id, finding.state) == ("m7300", State.EXPIRED)
    for day in (2, 3):
        of_day(lake, day, *range(0, DAY_S, 3600))
        audited(lake, day)
    first = min(kept(lake))
    lake.land([sink_row(7300, landed_at=T0 + 3.5 * DAY)])
    of_day(lake, 4, *range(0, DAY_S, 3600))
    with monkeypatch.context() as patched:
        patched.setattr(window_ledger, "shard_facts", died)
        with pytest.raises(DiedError):
            audited(lake, 4)
    assert kept(lake)[first][1] == 0
    audited(lake, 4)
    assert [row.state for row in lake.rows(FINDINGS)] == [State.FALSE_ALARM]


def test_a_day_is_summed_up_anew_when_its_files_are_others(lake: Lake) -> None:
    sound_days(lake, 2)
    lake.land([sink_row(7301)])  # of the first day: nobody knows a trace of it
    of_day(lake, 2, *range(0, DAY_S, 3600))
    audited(lake, 2)
    before = kept(lake)
    maintain(lake.warehouse, [FINGERPRINTS], gone={}, many_files=1)
    of_day(lake, 3, *range(0, DAY_S, 3600))
    audited(lake, 3)
    after = {day: kept(lake)[day] for day in before}
    assert {day for day in before if before[day][0] == after[day][0]} == set()
    alike = {day: unequal for day, (_, unequal) in before.items()}
    assert alike == {day: unequal for day, (_, unequal) in after.items()}
    assert alike[min(before)] == 1


def test_the_days_of_windows_are_those_of_which_they_have_a_part() -> None:
    day = date(2026, 11, 20)
    assert days_of([Window(T0, T0 + DAY)]) == {day, day + DAY}
    midnight = Window(T0 - T0.hour * HOUR, T0 - T0.hour * HOUR + DAY)
    assert days_of([midnight]) == {day}
    assert days_of([]) == set()
