"""The forms of Airflow's runs by hand, as hostile as a person or a script can fill them in."""

from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import ParamValidationError
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.airflow.backfill_steps import planning_job
from shardaudit.airflow.forms import AUDIT_FORM, BACKFILL_FORM
from shardaudit.airflow.planned_jobs import plan_audits
from shardaudit.model.config.parts import CONFIG
from shardaudit.model.errors import ShardauditError
from shardaudit.model.window import parse_instant
from tests.fuzz.hostile import BOUNDED, DEEP, NUMBER, TEXT

LEAST = """\
warehouse = "lake"
[streams.events]
stream_name = "events"
traces = { path = "traces" }
sink = { path = "sink" }
"""
FIXED = {"ingest", "audit", "backfill", "dedupe", "plan", "--no-ingest", "--include-stuck"}
TIMES = {"--from", "--to", "--as-of"}
RUN_AT = datetime(2026, 11, 25, tzinfo=UTC)

_PLAIN_TIMES = (
    "2026-11-20T00:00:00Z",
    "2026-11-21T00:00:00+14:00",
    "2026-11-20 00:00",
    "now",
    None,
)
_TIMES = st.sampled_from([*_PLAIN_TIMES, "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
_SHARDS = st.lists(st.sampled_from(["shardId-000000000001", "--dry-run", "a b", "x\n"]), max_size=2)
_USUAL: dict[str, st.SearchStrategy[Any]] = {
    "stream": st.just("events"),
    "what": st.sampled_from(["missing", "duplicates"]),
    "shards": _SHARDS,
    **dict.fromkeys(("from", "to", "as_of"), _TIMES),
    **dict.fromkeys(("include_stuck", "dry_run"), st.booleans()),
}
_HOSTILE = TEXT | st.none() | st.booleans() | NUMBER | DEEP | st.lists(TEXT | NUMBER, max_size=3)


def forms(names: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Filled in as people do, but for a field or two; most with a stream that there is."""
    usual = st.fixed_dictionaries({}, optional={name: _USUAL[name] for name in names})
    odd = st.dictionaries(st.sampled_from(names) | TEXT, _HOSTILE, max_size=1)
    streams = st.sampled_from([{}, {"stream": "events"}])
    return st.builds(
        lambda *parts: parts[0] | parts[1] | parts[2], usual, odd | st.just({}), streams
    )


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "shardaudit.toml"
    file.write_text(LEAST)
    monkeypatch.setenv(CONFIG, str(file))
    return file


def is_taken(form: dict[str, Any], params: dict[str, Any]) -> bool:
    """Whether Airflow lets a run begin with it."""
    filled = ParamsDict(deepcopy(params))
    try:
        filled.update(form)
        filled.validate()
    except (ParamValidationError, ValueError):
        return False
    return True


def assert_harmless(words: list[str], config: Path) -> None:
    """A command line that means just what the form could mean: a stream, times, shards."""
    assert words[:2] == ["--config", str(config)]
    rest = [word for word in words[2:] if word not in FIXED]
    given = [word.partition("=")[::2] for word in rest]
    for name, value in given:
        assert name in {"--stream", "--request", "--shard", *TIMES}, rest
        if name in TIMES:
            parse_instant(value, where=name)
    assert ("--stream", "events") in given


@BOUNDED
@given(form=forms(list(AUDIT_FORM)))
def test_a_form_of_an_audit_is_a_command_line_or_refused_in_words(
    config: Path, form: dict[str, Any]
) -> None:
    try:
        planned = plan_audits(config, form, run_after=RUN_AT)
    except ShardauditError as refused:
        assert 0 < len(str(refused)) < 20_000
        return
    for audit in planned:
        for words in audit["arguments"].values():
            assert_harmless(words, config)


@BOUNDED
@given(form=forms(list(BACKFILL_FORM)))
def test_a_form_of_a_backfill_is_a_command_line_or_refused_in_words(
    config: Path, form: dict[str, Any]
) -> None:
    taken = is_taken(form, dict(BACKFILL_FORM))
    try:
        planned = planning_job(form, request_id="r1")
    except ShardauditError as refused:
        assert 0 < len(str(refused)) < 20_000
        return
    except Exception:
        if taken:
            raise
        return
    if taken:
        for words in planned["arguments"].values():
            assert_harmless(words, config)
