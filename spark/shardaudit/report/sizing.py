"""What a stream asks for each day, reckoned by rates that were measured (docs/sizing.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from shardaudit.model.words import byte_size, counted, length, messages

TRACE_BYTES, LEDGER_BYTES, AUDIT_BYTES = 32, 96, 3.2  # of a message; of a cell, and in each audit
EMBEDDED_S, SPARK_S = 6.3e-6, 63e-6  # of one core for each message; Apache Spark's is the most
PROVEN = 50_000_000  # messages in one window: more were never audited at once


@dataclass(frozen=True, slots=True)
class Day:
    """A stream's day. `cells`: shards × buckets with messages; `looked_at`: days of an audit."""

    messages: float
    cells: float
    looked_at: float

    @property
    def room(self) -> dict[str, float]:
        """Bytes that the tables grow by."""
        return {
            "traces": self.messages * TRACE_BYTES,
            "fingerprints": self.cells * LEDGER_BYTES,
            "cells": self.cells * self.looked_at * AUDIT_BYTES,
        }

    @property
    def work(self) -> dict[str, timedelta]:
        """Time of one core: ingest, and the audit of what came."""
        return {
            "embedded": timedelta(seconds=self.messages * EMBEDDED_S),
            "Apache Spark": timedelta(seconds=self.messages * SPARK_S),
        }

    @property
    def fits_one_machine(self) -> bool:
        """Whether a first audit of such a window was tried on the embedded engine."""
        return self.messages * self.looked_at <= PROVEN


def usual_day(audit: Mapping[str, Any], *, looked_at: timedelta) -> Day:  # Any: a stored row
    """The usual day by a row of `audits`; `looked_at`: the configured window of an audit."""
    days = (audit["window_end"] - audit["window_start"]) / timedelta(days=1)
    of_a_day = audit["sent"] / days, audit["cells_total"] / days
    return Day(*of_a_day, looked_at=looked_at / timedelta(days=1))


def day_words(day: Day) -> str:
    """The day in one sentence."""
    room = ", ".join(f"{name} {byte_size(grown)}" for name, grown in day.room.items())
    embedded, spark = map(length, day.work.values())
    return (
        f"{messages(round(day.messages))} and {counted(round(day.cells), 'cell')} a day; "
        f"the tables grow by {room} (traces only where they come as JSON lines); ingest and audit "
        f"take {embedded} of one core on the embedded engine, {spark} at most on Apache Spark"
    )
