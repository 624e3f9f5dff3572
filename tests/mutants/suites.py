"""What is mutated, and which tests concern it."""

_GOLDEN = "tests/spark/test_golden.py"
_ORACLE = "tests/spark/test_properties.py"
_RULES = (  # the tables of the single rules: a hundredth of the time of an audit
    "tests/spark/audit/test_carried.py",
    "tests/spark/audit/test_cell_verdicts.py",
    "tests/spark/audit/test_cells.py",
    "tests/spark/audit/test_classify.py",
    "tests/spark/audit/test_drill_down.py",
    "tests/spark/audit/test_findings.py",
    "tests/spark/audit/test_held_spans.py",
    "tests/spark/audit/test_apart.py",
    "tests/spark/audit/test_shard_facts.py",
    "tests/spark/audit/test_totals.py",
    "tests/spark/audit/test_vanished_cells.py",
    "tests/unit/audit/test_totals.py",
)
_AUDIT = (
    *(*_RULES, _GOLDEN, _ORACLE),
    "tests/spark/audit/test_stamped_anew.py",
    "tests/spark/audit/test_vanished.py",
)
_CANARY = (
    "tests/unit/audit/test_canary.py",
    "tests/unit/audit/test_canary_answers.py",
    "tests/unit/audit/test_canary_plan.py",
    "tests/spark/audit/test_canary.py",
)
_DELTA = "tests/spark/ingest/test_ingest_delta.py"
_PARQUET = "tests/spark/ingest/test_ingest_parquet.py"
_TRACES = "tests/spark/ingest/test_ingest_traces.py"
_INGEST = (
    "tests/unit/ingest",
    "tests/spark/columns",
    "tests/spark/ingest/test_batch_summary.py",
    "tests/spark/ingest/test_deliveries.py",
    "tests/spark/ingest/test_fingerprint.py",
    "tests/spark/ingest/test_refused_traces.py",
    "tests/spark/ingest/test_placed_rows.py",
)
_BACKFILL = (  # what merges needs Apache Spark: `decode` is left out
    "tests/unit/backfill",
    "tests/unit/cli/test_backfill_command.py",
    "tests/spark/backfill/test_missing.py",
    "tests/spark/backfill/test_backfill_proof.py",
    "tests/spark/audit/test_stamped_anew.py",
)
_WATCH = (
    "tests/unit/watch",
    "tests/spark/watch/test_watch.py",
    "tests/spark/watch/test_watch_held_back.py",
    "tests/histories",
)
_HOLES = (
    "tests/unit/audit/test_hours.py",
    "tests/spark/watch/test_holes.py",
    "tests/spark/watch/test_shard_times.py",
    "tests/spark/watch/test_watch_holes.py",
)

SUITES: dict[str, tuple[str, ...]] = {
    "shardaudit/audit/rules/apart.py": _AUDIT,
    "shardaudit/audit/rules/deadlines.py": (
        *_HOLES,
        "tests/spark/watch/test_watch_held_back.py",
        "tests/spark/watch/test_frontiers.py",
    ),
    "shardaudit/audit/rules/canary/canary.py": _CANARY,
    "shardaudit/audit/rules/canary/canary_answers.py": _CANARY,
    "shardaudit/audit/rules/canary/canary_plan.py": _CANARY,
    "shardaudit/audit/rules/changed_cells.py": (
        "tests/spark/audit/test_changed_cells.py",
        "tests/spark/audit/test_held_spans.py",
        "tests/spark/audit/test_watermarks.py",
        "tests/spark/audit/test_late.py",
    ),
    "shardaudit/audit/rules/late_windows.py": (
        "tests/unit/audit/test_late_windows.py",
        "tests/spark/audit/test_late.py",
    ),
    "shardaudit/audit/rules/ledger_hours.py": (
        "tests/spark/audit/test_ledger_hours.py",
        "tests/spark/audit/test_shard_facts.py",
        "tests/spark/audit/test_kept_days.py",
        "tests/spark/audit/test_silences.py",
    ),
    "shardaudit/audit/rules/carried.py": (*_AUDIT, "tests/spark/ingest/test_own_rows.py"),
    "shardaudit/audit/rules/cell_verdicts.py": (
        *_AUDIT,
        "tests/spark/audit/test_unsent_at_places.py",
    ),
    "shardaudit/audit/rules/cells.py": (*_AUDIT, "tests/spark/ingest/test_ledger_totals.py"),
    "shardaudit/audit/rules/classify.py": _AUDIT,
    "shardaudit/audit/rules/drill_down.py": (*_AUDIT, "tests/spark/ingest/test_sink_scan.py"),
    "shardaudit/audit/rules/findings.py": (
        *_AUDIT,
        "tests/spark/audit/test_deadlines.py",
        "tests/spark/store/test_read_findings.py",
    ),
    "shardaudit/watch/rules/fed_cells.py": ("tests/spark/watch/test_fed_cells.py", *_HOLES),
    "shardaudit/watch/rules/holes.py": (*_HOLES, "tests/histories"),
    "shardaudit/watch/rules/differing_cells.py": (*_HOLES, "tests/spark/watch/test_frontiers.py"),
    "shardaudit/audit/rules/gaps.py": ("tests/spark/audit/test_gaps.py", *_CANARY),
    "shardaudit/audit/rules/hours.py": (
        "tests/spark/audit/test_hours.py",
        "tests/spark/audit/test_patience.py",
        *_HOLES,
        "tests/spark/audit/test_gates.py",
    ),
    "shardaudit/audit/rules/patience.py": ("tests/spark/audit/test_patience.py", _GOLDEN),
    "shardaudit/watch/rules/frontiers.py": (
        "tests/spark/watch/test_shard_times.py",
        "tests/spark/watch/test_frontiers.py",
        *_WATCH,
    ),
    "shardaudit/watch/rules/filtered_holes.py": ("tests/spark/watch/test_filtered_holes.py",),
    "shardaudit/model/route/filters.py": ("tests/unit/model/test_filters.py",),
    "shardaudit/audit/route/left_out.py": (
        "tests/spark/audit/test_filters_of_routes.py",
        "tests/spark/audit/test_random_filters.py",
        "tests/spark/audit/test_told_filters.py",
    ),
    "shardaudit/audit/rules/quiet.py": (
        "tests/unit/audit/test_quiet.py",
        "tests/spark/audit/test_silences.py",
        _GOLDEN,
    ),
    "shardaudit/ingest/producer_numbers.py": ("tests/unit/ingest/test_producer_numbers.py",),
    "shardaudit/model/number_spans.py": ("tests/unit/ingest/test_producer_numbers.py",),
    "shardaudit/audit/rules/shard_facts.py": _AUDIT,
    "shardaudit/audit/rules/totals.py": (*_AUDIT, "tests/spark/ingest/test_ledger_totals.py"),
    "shardaudit/audit/rules/watermark.py": (
        "tests/unit/audit/test_watermark.py",
        "tests/spark/audit/test_watermarks.py",
        *_AUDIT,
    ),
    "shardaudit/audit/rules/vanished.py": _AUDIT,
    "shardaudit/store/newest_cells.py": (*_AUDIT, "tests/spark/watch/test_watch_holes.py"),
    "shardaudit/ingest/rules/batch_summary.py": (*_INGEST, "tests/spark/audit/test_gates.py"),
    "shardaudit/ingest/rules/commits.py": (
        *_INGEST,
        "tests/unit/adapters/test_delta_sink_reader.py",
        _DELTA,
    ),
    "shardaudit/columns/faults.py": (*_INGEST, _TRACES, _DELTA),
    "shardaudit/ingest/rules/fingerprint.py": (*_INGEST, *_AUDIT, _DELTA, _PARQUET),
    "shardaudit/ingest/rules/placed_rows.py": (*_INGEST, *_AUDIT),
    "shardaudit/ingest/rules/batch_inputs.py": (*_INGEST, _DELTA, _PARQUET, _TRACES),
    "shardaudit/ingest/rules/sink_columns.py": (*_INGEST, _DELTA, _PARQUET),
    "shardaudit/columns/instants.py": (*_INGEST, _DELTA),
    "shardaudit/columns/ledger_sums.py": (*_INGEST, *_AUDIT),
    "shardaudit/ingest/rules/repeats.py": (
        "tests/spark/ingest/test_repeats.py",
        *_AUDIT,
        _TRACES,
        "tests/spark/ingest/test_ingest_rotated.py",
    ),
    "shardaudit/ingest/rules/deliveries.py": (*_INGEST, *_AUDIT, _DELTA, _PARQUET),
    "shardaudit/ingest/rules/refused_traces.py": (*_INGEST, *_AUDIT, _TRACES),
    "shardaudit/ingest/rules/coarse_times.py": (
        "tests/spark/ingest/test_coarse_times.py",
        "tests/spark/audit/test_coarse_landing_times.py",
    ),
    "shardaudit/ingest/rules/lineage.py": ("tests/unit/ingest/test_lineage.py",),
    "shardaudit/columns/shard_listings.py": ("tests/spark/columns/test_shard_listings.py",),
    "shardaudit/ingest/rules/sighted.py": ("tests/spark/ingest/test_sighted.py",),
    **{
        f"shardaudit/backfill/rules/{name}.py": _BACKFILL
        for name in (
            *("aggregated_records", "approval", "column_sources", "missing", "pace"),
            *("plan", "ranges", "reading", "republished"),
        )
    },
    "shardaudit/backfill/rules/copies.py": ("tests/spark/backfill/test_copies.py",),
    "shardaudit/backfill/window_reader.py": _BACKFILL,
    **{
        f"shardaudit/watch/rules/{name}.py": _WATCH
        for name in (
            *("advice", "deadline", "facts"),
            *("judgement", "notifications", "shard_state"),
        )
    },
}
# A fault of the self-check itself has to be noticed by the tests with the self-check at work.
SELF_CHECK = _CANARY


# What reads or writes no warehouse.
_QUICK = (
    "tests/unit/",
    *(*_RULES, *_INGEST, *_HOLES[:-1]),
    "tests/spark/audit/test_changed_cells.py",
    "tests/spark/audit/test_hours.py",
    "tests/spark/audit/test_ledger_hours.py",
    "tests/spark/audit/test_patience.py",
    "tests/spark/backfill/test_copies.py",
    "tests/spark/backfill/test_missing.py",
    "tests/spark/ingest/test_coarse_times.py",
    "tests/spark/ingest/test_repeats.py",
    "tests/spark/watch/test_fed_cells.py",
    "tests/spark/watch/test_frontiers.py",
)


def stages(suite: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The tests that need no audit, and the others: already to collect those takes a while."""
    quick = tuple(path for path in suite if path.startswith(_QUICK) and path != _ORACLE)
    return [stage for stage in (quick, tuple(p for p in suite if p not in quick)) if stage]


# Of these rooms what the watch alone runs.
_WATCHED = ("shardaudit/audit/rules/deadlines.py",)


def is_audited(path: str) -> bool:
    """Whether an audit runs it, so that the self-check can notice."""
    return (
        path.startswith(("shardaudit/audit/rules/", "shardaudit/columns/", "shardaudit/ingest/"))
        and path not in _WATCHED
    )
