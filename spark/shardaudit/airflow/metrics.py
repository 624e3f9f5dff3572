"""Numbers for other tools, through Airflow's own switch: its `[metrics]` says whether and where.

`shardaudit.<audit|watch>.<figure>.<stream>`: the stream is in the name, as StatsD has no tags.
"""

from collections.abc import Mapping

from airflow.sdk.observability.stats import gauge, normalize_name_for_stats


def emit(group: str, stream: str, figures: Mapping[str, float]) -> None:
    """Sends each figure as a gauge."""
    # A dot would be another level of the name: as Airflow does with the names of its tasks.
    place = normalize_name_for_stats(stream.replace(".", "__"), log_warning=False)
    for name, value in figures.items():
        gauge(f"shardaudit.{group}.{name}.{place}", value, tags={"stream": stream})
