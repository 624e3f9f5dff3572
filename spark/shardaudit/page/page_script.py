"""The numbers behind a map, for the page's script: only what a hover or a click needs."""

from shardaudit.page.page_map import HeatMap, MapRow, letter
from shardaudit.page.page_svg import LEFT, TOP, WIDTH, Drawing
from shardaudit.page.page_words import MEANINGS, METRICS, NO_SHARD, NOT_KNOWN

_SPARSE = ("missing", "pending", "extra_rows", "untraced")


def script_map(found: HeatMap, drawn: Drawing) -> dict[str, object]:
    """The map as a JSON object: a letter per place, and counts where they are not zero."""
    names = {name for row in found.rows for name in row.verdicts} - {NO_SHARD}
    return {
        "start": round(found.bins.start.timestamp() * 1000),
        "step": round(found.bins.width.total_seconds() * 1000),
        "bins": found.bins.count,
        "left": LEFT,
        "top": TOP,
        "width": WIDTH,
        "cellWidth": drawn.cell_width,
        "cellHeight": drawn.cell_height,
        "metric": METRICS[found.metric][0],
        "notKnown": NOT_KNOWN.get(found.metric, ""),
        "verdicts": {letter(name): [name, MEANINGS[name]] for name in sorted(names)},
        "rows": [_row(row) for row in found.rows],
    }


def _row(row: MapRow) -> dict[str, object]:
    seconds = {"seconds": list(row.seconds)} if row.seconds else {}
    return {
        "first": row.group.first,
        "last": row.group.last,
        "shards": row.group.shards,
        "letters": "".join(letter(name) or " " for name in row.verdicts),
        "sent": list(row.counts["sent"]),
        "reasons": {i: why for i, why in enumerate(row.reasons) if why},
        **{name: {i: n for i, n in enumerate(row.counts[name]) if n} for name in _SPARSE},
        **seconds,
    }
