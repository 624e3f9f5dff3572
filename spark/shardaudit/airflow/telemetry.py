"""What other tools are told through Airflow: gauges, and the datasets of OpenLineage.

`shardaudit.<audit|watch|health|budget>.<figure>.<stream>`: the stream is in the name, as StatsD
has no tags.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from airflow.sdk.observability.stats import gauge, normalize_name_for_stats

from shardaudit.airflow.planned_jobs import PlannedJob
from shardaudit.model.config.settings import load_settings

_TRACES, _SINK = "<traces>", "<sink>"  # the user's own; the others are tables of the warehouse


def emit(group: str, stream: str, figures: Mapping[str, float]) -> None:
    """Sends each figure as a gauge."""
    # A dot would be another level of the name: as Airflow does with the names of its tasks.
    place = normalize_name_for_stats(stream.replace(".", "__"), log_warning=False)
    for name, value in figures.items():
        gauge(f"shardaudit.{group}.{name}.{place}", value, tags={"stream": stream})


@dataclass(frozen=True, slots=True)
class Lineage:
    """Datasets as (namespace, name), as OpenLineage names places."""

    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]


_KNOWN = ("findings", "transitions", "gaps", "gap_transitions")
_TABLES: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "audit": (
        (_TRACES, _SINK, "quiet_times"),
        (
            *("traces", "trace_sessions", "fingerprints", "quarantine", "batches"),
            *("sightings", "sighting_counts"),
            *("cells", "evidence", "ledger_hours", "finding_counts", *_KNOWN, "audits"),
            *("watermarks", "gates", "notifications"),
        ),
    ),
    "watch": (
        ("fingerprints", "ledger_hours", "findings", "gaps"),
        ("shards", "positions", "holes", "notifications"),
    ),
    "backfill plan": (("findings", "gaps"), ("backfills", "backfill_ids", "backfill_gaps")),
    "backfill replay": (
        ("backfills", "backfill_ids", "backfill_gaps"),
        (_SINK, "backfills", "quarantine", *_KNOWN),
    ),
    "backfill verify": (
        (_SINK, "backfill_ids", "backfill_gaps"),
        ("backfills", *_KNOWN, "gates"),
    ),
    "dedupe plan": (("findings",), ("dedupes", "dedupe_ids")),
    "dedupe remove": (("dedupe_ids", _SINK), (_SINK, "removed_rows", "dedupes")),
    "dedupe verify": (("dedupe_ids", _SINK), ("dedupes", "findings", "transitions", "gates")),
}


def lineage(command: str, planned: PlannedJob) -> Lineage:
    """What the command of a planned job reads and writes; an upkeep moves no data."""
    _, config, *words = planned["arguments"][command]
    name = " ".join(takewhile(lambda word: not word.startswith("--"), words))
    if name not in _TABLES:
        return Lineage((), ())
    settings = load_settings(Path(config))
    stream = settings.stream(planned["stream"])
    own = {_TRACES: stream.traces.path, _SINK: stream.sink.path}
    inputs, outputs = _TABLES[name]

    def datasets(tables: Sequence[str]) -> tuple[tuple[str, str], ...]:
        return tuple(_named(own.get(table, f"{settings.warehouse}/{table}")) for table in tables)

    return Lineage(datasets(inputs), datasets(outputs))


def operator_lineage(found: Lineage) -> Any:  # Any: a class of the provider
    """The same in the provider's words. It alone asks, so it is installed."""
    from airflow.providers.openlineage.extractors import OperatorLineage  # noqa: PLC0415
    from openlineage.client.event_v2 import Dataset  # noqa: PLC0415

    return OperatorLineage(
        inputs=[Dataset(namespace=space, name=name) for space, name in found.inputs],
        outputs=[Dataset(namespace=space, name=name) for space, name in found.outputs],
    )


def _named(place: str) -> tuple[str, str]:
    """OpenLineage's naming of S3 and of the local disk."""
    bucket, _, path = place.removeprefix("s3a://").partition("/")
    return (f"s3://{bucket}", path or "/") if place.startswith("s3a://") else ("file", place)
