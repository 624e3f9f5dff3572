"""The page of a stream as one HTML file that needs nothing else: for a ticket or a mail."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import pyarrow.compute as pc
from botocore.exceptions import BotoCoreError, ClientError

from shardaudit.adapters.aws.s3 import bucket_and_prefix, s3_client, s3_error
from shardaudit.adapters.lake.broken_tables import WarehouseUnreadableError
from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.model.audit_id import late_of
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ConfigError
from shardaudit.model.tables.audit_tables import AUDITS
from shardaudit.model.verdict import AuditStatus
from shardaudit.model.window import Window
from shardaudit.page.page_html import asset, html_page, script_hash
from shardaudit.page.page_of_stream import stream_values
from shardaudit.page.page_reading import read_finding_rows, read_gaps
from shardaudit.page.page_state import PREFIX, PageState
from shardaudit.store.audits import audits_of, read_rows

_FOLDER = "reports"


def keep_html(settings: Settings, name: str, html: str) -> str:
    """Writes the file `name`.html into the warehouse's reports, and says where it is.

    Input:
        name: an audit's id, which is made of the configuration's names and digits alone.

    Raises:
        WarehouseUnreadableError: the folder cannot be written.
        S3RefusedError, S3UnreachableError: the bucket cannot.
    """
    place = f"{settings.warehouse.rstrip('/')}/{_FOLDER}/{name}.html"
    if not place.startswith("s3a://"):
        try:
            Path(place).parent.mkdir(parents=True, exist_ok=True)
            Path(place).write_text(html, encoding="utf-8")
        except OSError as error:
            raise WarehouseUnreadableError(place, error) from error
        return place
    bucket, prefix = bucket_and_prefix(settings.warehouse)
    try:
        s3_client(settings.aws).put_object(
            Bucket=bucket,
            Key=f"{prefix}{_FOLDER}/{name}.html",
            Body=html.encode(),
            ContentType="text/html; charset=utf-8",
        )
    except (BotoCoreError, ClientError) as error:
        raise s3_error(place, error) from error
    return place


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """What a report shows; `verdict` is that of its map's worst place."""

    stream: str
    window_start: datetime
    window_end: datetime
    verdict: str
    shards: int
    findings: int
    gaps: int
    html: str


@dataclass(frozen=True, slots=True)
class Kept:
    """Where a report is, and the address in Airflow of what it shows."""

    place: str
    link: str


def stream_report(
    settings: Settings, state: PageState, *, audit_id: str | None, now: datetime
) -> WrittenReport:
    """The report of a stream, as the newest audits found it, or as one of them did.

    Raises:
        ConfigError: there is no published audit of that name.
    """
    settings.stream(state.stream)
    audits = (
        _with_late(settings, state.stream, audit_id)
        if audit_id is not None
        else audits_of(settings, state.stream, now=now)
    )
    values = stream_values(settings, state, audits, now=now)
    window: Window = values["shown"].window
    findings = read_finding_rows(settings, state, window)
    gaps, gaps_total = read_gaps(settings, state, window)
    code = asset("page.js")
    html = html_page(
        "report.html",
        values
        | {
            "is_report": True,
            "title": f"{state.stream}, {values['span_from']} to {values['span_to']}",
            "due": [replace(line, link=None) for line in values["due"]],
            "findings": findings,
            "gaps": gaps,
            "gaps_total": gaps_total,
            "style": asset("page.css"),
            "code": code,
            "hash": script_hash(code),
        },
    )
    found = values["found"]
    return WrittenReport(
        stream=state.stream,
        window_start=window.start,
        window_end=window.end,
        verdict=found.worst,
        shards=found.shards,
        findings=findings.total,
        gaps=gaps_total,
        html=html,
    )


def write_report(settings: Settings, stream: str, audit_id: str, *, now: datetime) -> Kept:
    """Writes the report of one audit beside the tables; doing it again writes the same file.

    Raises:
        ConfigError: the audit was not published.
    """
    report = stream_report(settings, PageState(stream=stream), audit_id=audit_id, now=now)
    shown = PageState(stream=stream, window=Window(report.window_start, report.window_end))
    return Kept(keep_html(settings, audit_id, report.html), f"/{PREFIX}/{shown.link('stream')}")


def _with_late(settings: Settings, stream: str, audit_id: str) -> list[Row]:
    """The audit, whenever it was, and those of what came late before it."""
    audits = read_rows(settings, AUDITS, where=pc.field("stream") == stream)
    return [_published(audits, audit_id), *(row for row in audits if late_of(row) == audit_id)]


def _published(audits: Sequence[Row], audit_id: str) -> Row:
    for row in audits:
        if row["audit_id"] == audit_id and row["status"] == AuditStatus.PUBLISHED:
            return row
    names = sorted(row["audit_id"] for row in audits if row["status"] == AuditStatus.PUBLISHED)
    raise ConfigError("--audit", audit_id, f"a published audit, as {', '.join(names[-3:]) or '-'}")
