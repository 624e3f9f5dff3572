"""What is mutated, and which tests concern it: the quick ones first, one that fails is enough."""

_GOLDEN = "tests/spark/test_golden.py"
_ORACLE = "tests/spark/compare/test_properties.py"
_SINKS = ("tests/spark/jobs/test_ingest_delta.py", "tests/spark/jobs/test_ingest_parquet.py")
_BACKFILL = (("tests/unit/backfill",), ("tests/spark/jobs/test_backfill.py",))
_COMPARE = ("tests/unit/compare", "tests/spark/compare/test_hours.py")

SUITES: dict[str, tuple[tuple[str, ...], ...]] = {
    "shardaudit/compare/carried.py": ((_GOLDEN,), (_ORACLE,)),
    "shardaudit/compare/cell_verdicts.py": ((_GOLDEN,), (_ORACLE,)),
    "shardaudit/compare/cells.py": ((_GOLDEN,), (_ORACLE,)),
    "shardaudit/compare/classify.py": ((_GOLDEN,), (_ORACLE,)),
    "shardaudit/compare/apart.py": ((_GOLDEN,), (_ORACLE,)),
    "shardaudit/compare/drill_down.py": ((_GOLDEN,), (_ORACLE,)),
    "shardaudit/compare/findings.py": ((_GOLDEN,), (_ORACLE,)),
    "shardaudit/compare/grid.py": ((_GOLDEN,), (_ORACLE,)),
    "shardaudit/compare/hours.py": (_COMPARE, ("tests/spark/jobs/test_gates.py",)),
    "shardaudit/compare/patience.py": (("tests/spark/compare/test_patience.py",), (_GOLDEN,)),
    "shardaudit/compare/progress.py": (
        ("tests/spark/compare/test_progress.py",),
        ("tests/spark/jobs/test_watch.py", "tests/histories"),
    ),
    "shardaudit/compare/sample.py": ((_GOLDEN,), (_ORACLE,)),
    "shardaudit/compare/shard_facts.py": ((_GOLDEN,), (_ORACLE,)),
    "shardaudit/compare/totals.py": ((_GOLDEN,), (_ORACLE,)),
    "shardaudit/ingest/fingerprint.py": (
        ("tests/spark/ingest/test_fingerprint.py",),
        (_GOLDEN,),
        (
            _ORACLE,
            "tests/spark/jobs/test_ingest_delta.py",
            "tests/spark/jobs/test_ingest_parquet.py",
        ),
    ),
    "shardaudit/ingest/placing.py": ((_ORACLE,), ("tests/spark/jobs/test_ingest_delta.py",)),
    "shardaudit/ingest/repeats.py": (
        (_GOLDEN,),
        (_ORACLE, "tests/spark/jobs/test_ingest_traces.py"),
    ),
    "shardaudit/ingest/sink.py": (
        ("tests/spark/ingest/test_sink.py",),
        (_GOLDEN,),
        _SINKS,
    ),
    "shardaudit/ingest/traces.py": (
        ("tests/spark/ingest/test_judged_traces.py",),
        (_GOLDEN,),
        (_ORACLE, "tests/spark/jobs/test_ingest_traces.py"),
    ),
    "shardaudit/backfill/plan.py": (
        ("tests/unit/backfill",),
        ("tests/spark/jobs/test_backfill.py",),
    ),
    "shardaudit/backfill/windows.py": _BACKFILL,
    **{
        f"shardaudit/watch/{name}.py": (("tests/unit/watch",), ("tests/histories",))
        for name in (
            *("advice", "deadline", "evidence", "facts", "judge", "lineage", "notifications"),
            *("skew", "state", "texts"),
        )
    },
}


def is_audited(path: str) -> bool:
    """Whether an audit runs it, so that the self-check can notice."""
    return path.startswith(("shardaudit/compare/", "shardaudit/ingest/"))
