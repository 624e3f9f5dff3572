"""What is mutated, and which tests concern it."""

_GOLDEN = "tests/spark/test_golden.py"
_ORACLE = "tests/spark/compare/test_properties.py"
_RULES = (  # the tables of the single rules: a hundredth of the time of an audit
    "tests/spark/compare/test_cell_verdicts.py",
    "tests/spark/compare/test_classify.py",
    "tests/spark/compare/test_drill_down.py",
    "tests/spark/compare/test_folding.py",
    "tests/spark/compare/test_held_spans.py",
    "tests/spark/compare/test_apart.py",
    "tests/spark/compare/test_shard_facts.py",
    "tests/spark/compare/test_totals.py",
    "tests/unit/compare/test_totals.py",
)
_AUDIT = (
    *(*_RULES, _GOLDEN, _ORACLE),
    "tests/spark/jobs/test_stamped_anew.py",
    "tests/spark/jobs/test_vanished.py",
)
_CANARY = ("tests/unit/compare/test_canary.py", "tests/spark/jobs/test_canary.py")
_DELTA = "tests/spark/jobs/test_ingest_delta.py"
_PARQUET = "tests/spark/jobs/test_ingest_parquet.py"
_TRACES = "tests/spark/jobs/test_ingest_traces.py"
_INGEST = ("tests/unit/ingest", "tests/spark/ingest")
_BACKFILL = (  # what merges needs Apache Spark: `copies` and `decode` are left out
    "tests/unit/backfill",
    "tests/unit/jobs/test_backfill_command.py",
    "tests/spark/backfill/test_missing.py",
    "tests/spark/jobs/test_backfill_proof.py",
    "tests/spark/jobs/test_stamped_anew.py",
)
_WATCH = (
    "tests/unit/watch",
    "tests/spark/jobs/test_watch.py",
    "tests/spark/jobs/test_watch_held_back.py",
    "tests/histories",
)
_HOLES = (
    "tests/unit/compare/test_holes.py",
    "tests/spark/compare/test_hole_cells.py",
    "tests/spark/compare/test_shard_times.py",
    "tests/spark/jobs/test_watch_holes.py",
)

SUITES: dict[str, tuple[str, ...]] = {
    "shardaudit/compare/accepted_times.py": (
        "tests/spark/jobs/test_watermarks.py",
        "tests/spark/jobs/test_silences.py",
        _GOLDEN,
    ),
    "shardaudit/compare/apart.py": _AUDIT,
    "shardaudit/compare/arrivals.py": (
        *_HOLES,
        "tests/spark/jobs/test_watch_held_back.py",
        "tests/spark/compare/test_progress.py",
    ),
    "shardaudit/compare/canary.py": _CANARY,
    "shardaudit/compare/canary_answers.py": _CANARY,
    "shardaudit/compare/canary_plan.py": _CANARY,
    "shardaudit/compare/carried.py": (*_AUDIT, "tests/spark/jobs/test_own_rows.py"),
    "shardaudit/compare/cell_verdicts.py": _AUDIT,
    "shardaudit/compare/cells.py": (*_AUDIT, "tests/spark/jobs/test_ledger_totals.py"),
    "shardaudit/compare/classify.py": _AUDIT,
    "shardaudit/compare/drill_down.py": (*_AUDIT, "tests/spark/jobs/test_sink_scan.py"),
    "shardaudit/compare/findings.py": (
        *_AUDIT,
        "tests/spark/jobs/test_deadlines.py",
        "tests/spark/jobs/test_findings.py",
    ),
    "shardaudit/compare/grid.py": _AUDIT,
    "shardaudit/compare/holes.py": (*_HOLES, "tests/histories"),
    "shardaudit/compare/hours.py": (
        "tests/spark/compare/test_hours.py",
        "tests/spark/compare/test_patience.py",
        *_HOLES,
        "tests/spark/jobs/test_gates.py",
    ),
    "shardaudit/compare/patience.py": ("tests/spark/compare/test_patience.py", _GOLDEN),
    "shardaudit/compare/progress.py": (
        "tests/spark/compare/test_shard_times.py",
        "tests/spark/compare/test_progress.py",
        *_WATCH,
    ),
    "shardaudit/compare/quiet.py": (
        "tests/unit/compare/test_quiet.py",
        "tests/spark/jobs/test_silences.py",
        _GOLDEN,
    ),
    "shardaudit/compare/sample.py": _AUDIT,
    "shardaudit/compare/shard_facts.py": _AUDIT,
    "shardaudit/compare/totals.py": (*_AUDIT, "tests/spark/jobs/test_ledger_totals.py"),
    "shardaudit/compare/watermark.py": (
        "tests/unit/compare/test_watermark.py",
        "tests/spark/jobs/test_watermarks.py",
        *_AUDIT,
    ),
    "shardaudit/compare/vanished.py": _AUDIT,
    "shardaudit/ingest/batch_summary.py": (*_INGEST, "tests/spark/jobs/test_gates.py"),
    "shardaudit/ingest/columns.py": (*_INGEST, _DELTA, _PARQUET),
    "shardaudit/ingest/commits.py": (*_INGEST, "tests/unit/adapters/test_delta_sink.py", _DELTA),
    "shardaudit/ingest/damage.py": (*_INGEST, _GOLDEN),
    "shardaudit/ingest/faults.py": (*_INGEST, _TRACES, _DELTA),
    "shardaudit/ingest/fingerprint.py": (*_INGEST, *_AUDIT, _DELTA, _PARQUET),
    "shardaudit/ingest/inputs.py": (*_INGEST, _DELTA, _PARQUET, _TRACES),
    "shardaudit/ingest/instants.py": (*_INGEST, _DELTA),
    "shardaudit/ingest/placing.py": (*_INGEST, *_AUDIT, _DELTA, _PARQUET),
    "shardaudit/ingest/repeats.py": (*_AUDIT, _TRACES, "tests/spark/jobs/test_ingest_rotated.py"),
    "shardaudit/ingest/sink.py": (*_INGEST, *_AUDIT, _DELTA, _PARQUET),
    "shardaudit/ingest/traces.py": (*_INGEST, *_AUDIT, _TRACES),
    **{
        f"shardaudit/backfill/{name}.py": _BACKFILL
        for name in (
            *("approval", "kpl", "missing", "pace", "plan", "price", "reading", "replay"),
            *("republish", "request", "safety", "sources", "windows"),
        )
    },
    **{
        f"shardaudit/watch/{name}.py": _WATCH
        for name in (
            *("advice", "deadline", "evidence", "facts", "judge", "lineage", "notifications"),
            *("skew", "state", "texts"),
        )
    },
}
# A fault of the self-check itself has to be noticed by the tests with the self-check at work.
SELF_CHECK = _CANARY


_QUICK = ("tests/unit/", "tests/spark/backfill/", "tests/spark/compare/", "tests/spark/ingest")


def stages(suite: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The tests that need no audit, and the others: already to collect those takes a while."""
    quick = tuple(path for path in suite if path.startswith(_QUICK) and path != _ORACLE)
    return [stage for stage in (quick, tuple(p for p in suite if p not in quick)) if stage]


# Of these rooms what the watch alone runs.
_WATCHED = tuple(f"shardaudit/compare/{name}.py" for name in ("arrivals", "holes", "progress"))


def is_audited(path: str) -> bool:
    """Whether an audit runs it, so that the self-check can notice."""
    return path.startswith(("shardaudit/compare/", "shardaudit/ingest/")) and path not in _WATCHED
