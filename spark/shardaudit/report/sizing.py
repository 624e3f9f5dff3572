"""What a stream asks for each day, reckoned by rates that were measured (docs/sizing.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from shardaudit.model.words import byte_size, counted, length, messages

TRACE_BYTES, LEDGER_BYTES, AUDIT_BYTES = 32, 96, 3.2  # of a message; of a cell, and in each audit
EMBEDDED_S, SPARK_S = 6.3e-6, 63e-6  # of one core for each message; Apache Spark's is the most
PROVEN = 50_000_000  # messages in one window: more were never audited at once
GETS, PUTS = 26_000, 5_800  # requests to S3 of a day of watches and one night; PUT, COPY or LIST


@dataclass(frozen=True, slots=True)
class Prices:
    """A region's list prices in dollars: of S3 Standard, and of Fargate (Linux, x86)."""

    gib_month: float
    put: float
    get: float
    core_hour: float
    memory_gib_hour: float

    @property
    def machine_hour(self) -> float:
        """A core with the least memory that Fargate gives one."""
        return self.core_hour + 2 * self.memory_gib_hour


# Source: AWS's Price List files, as public projects quote them (they were not read at AWS):
# AmazonS3 of both regions as published on 2026-08-07; AmazonECS of us-east-1 as read on 2026-09-29
# and of eu-central-1 as read on 2026-08-05. S3's are those of the first 50 TB.
PRICES_OF = "September 2026"
PRICES = {
    "us-east-1": Prices(0.023, 0.005 / 1000, 0.0004 / 1000, 0.04048, 0.004445),
    "eu-central-1": Prices(0.0245, 0.0054 / 1000, 0.00043 / 1000, 0.04656, 0.00511),
}


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


def dollars(day: Day, prices: Prices) -> dict[str, float]:
    """What a day costs by its parts; `stored`: what it adds, for each month that it is kept."""
    work = {
        name: time / timedelta(hours=1) * prices.machine_hour for name, time in day.work.items()
    }
    return {
        "requests": GETS * prices.get + PUTS * prices.put,
        **work,
        "stored": sum(day.room.values()) / 2**30 * prices.gib_month,
    }


def cents(amount: float) -> str:
    """Dollars to the cent."""
    return f"${amount:,.2f}" if amount >= 0.005 else "under $0.01"  # noqa: PLR2004 - half a cent


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
        f"take {embedded} of one core on the embedded engine, {spark} at most on Apache Spark; by "
        f"AWS's list prices of {PRICES_OF} (yours differ) a day costs "
        + ", ".join(f"in {region} {_costs(day, prices)}" for region, prices in PRICES.items())
    )


def _costs(day: Day, prices: Prices) -> str:
    found = {name: cents(amount) for name, amount in dollars(day, prices).items()}
    return (
        f"{found['embedded']} embedded or at most {found['Apache Spark']} on Apache Spark, "
        f"{found['requests']} of requests to S3, and {found['stored']} for each month it is kept"
    )
