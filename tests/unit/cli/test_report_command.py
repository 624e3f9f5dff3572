"""`shardaudit report`: one file that needs nothing, as the page or as one audit found it."""

import base64
import hashlib
import io
import json
import re
from contextlib import redirect_stdout
from datetime import timedelta
from pathlib import Path

import pytest

from shardaudit.adapters.clock import now
from shardaudit.cli.main import main
from shardaudit.model.config.settings import load_settings
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.tables.audit_tables import AUDITS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.store.audits import audits_of
from tests.page_warehouse import HOSTILE, STREAM, write_rejected, write_rows, write_warehouse

CONFIG = """
warehouse = "warehouse"
[streams.events]
stream_name = "events"
bucket = "1h"
sample_rate = 0.1
loss_budget = 0.01
traces = { path = "traces" }
sink = { path = "sink" }
[streams.orders]
stream_name = "orders"
traces = { path = "traces" }
sink = { path = "sink" }
"""
ADDRESS = re.compile(
    r"""(?:src|href|action)\s*=|url\(\s*["']?(?!#)|@import|https?://(?!www\.w3\.org)"""
)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    (folder / "shardaudit.toml").write_text(CONFIG)
    write_warehouse(folder / "warehouse", now=now(), bucket=timedelta(hours=1))
    return folder / "shardaudit.toml"


def report(config: Path, out: Path, *options: str) -> int:
    return main(
        [
            "--config",
            str(config),
            "--json",
            "report",
            f"--stream={STREAM}",
            f"--out={out}",
            *options,
        ]
    )


@pytest.fixture(scope="module")
def reported(config: Path) -> tuple[str, str]:
    """The report of the stream: what the command says of it, and the file."""
    out, said = config.parent / "report.html", io.StringIO()
    with redirect_stdout(said):
        assert report(config, out) == ExitCode.DONE
    return said.getvalue(), out.read_text()


@pytest.fixture
def html(reported: tuple[str, str]) -> str:
    return reported[1]


def test_the_command_says_in_json_what_it_reported(reported: tuple[str, str]) -> None:
    document = json.loads(reported[0])
    assert (document["verdict"], document["shards"]) == ("silent", 24)


def test_the_report_is_one_file_without_an_address(html: str) -> None:
    body = re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)  # ours, which makes links
    assert [found.group() for found in ADDRESS.finditer(body)] == []
    assert "default-src 'none'" in html
    assert html.count("<script") == 2
    (code,) = re.findall(r"<script>(.*?)</script>", html, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html  # or a browser would not run it


def test_the_report_says_the_engine_and_each_rate_of_a_sample_with_its_interval(html: str) -> None:
    assert "Apache Spark 4.1.4" in html
    assert "(UTC), 1 % of the messages: " in html
    assert "of a sample of the ids." in html
    assert re.search(r"99\.930 % <span title=[^>]+>\(\d\d\.\d{3} to \d\d\.\d{3}\)</span>", html)


def test_names_from_outside_are_text_in_the_report(html: str) -> None:
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "sink: rows of no trace, as &lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<script>alert" not in html


def test_the_report_of_one_audit_is_as_it_was(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    end = now().replace(minute=0, second=0, microsecond=0) - timedelta(days=1)
    old = {
        "audit_id": "another",
        "stream": STREAM,
        "window_start": end - timedelta(days=7),
        "window_end": end,
        "as_of": end,
        "status": "published",
        "verdict": "ok",
        **dict.fromkeys(("sent", "landed", "matched", "missing", "duplicated"), 0),
        **dict.fromkeys(("extra_rows", "untraced"), 0),
    }
    write_rows(config.parent / "warehouse", AUDITS, [old])
    assert report(config, tmp_path / "a.html", "--audit=another") == ExitCode.DONE
    document = json.loads(capsys.readouterr().out)
    assert (document["verdict"], document["shards"]) == ("unknown", 0)  # it has no cell


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--audit=x"], "a published audit, as"),
        (["--from=2026-11-01T00:00:00Z"], "both, or neither"),
        (["--from=2026-11-01", "--to=2026-11-02"], "with a zone"),
        (["--out=/nonexistent/x.html"], "a file that can be written"),
        (["--stream=order"], "did you mean orders?"),
    ],
)
def test_what_cannot_be_reported_is_refused_in_words(
    config: Path, tmp_path: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(config, tmp_path / "x.html", *options) == ExitCode.USAGE
    assert said in capsys.readouterr().err


def test_the_report_says_that_a_later_audit_was_rejected_unless_it_is_of_one_audit(
    tmp_path: Path,
) -> None:
    (tmp_path / "shardaudit.toml").write_text(CONFIG)
    write_warehouse(tmp_path / "warehouse", now=now(), shards=2, bucket=timedelta(hours=1))
    rejected = write_rejected(tmp_path / "warehouse", now=now(), said=HOSTILE[0])
    config, out = tmp_path / "shardaudit.toml", tmp_path / "report.html"
    assert report(config, out) == ExitCode.DONE
    html = out.read_text()
    assert "was rejected and published nothing" in html
    assert "<li>sink: cannot be judged: &lt;script&gt;alert(1)&lt;/script&gt;</li>" in html
    assert report(config, out, f"--audit={rejected}") == ExitCode.USAGE
    audits = audits_of(load_settings(config), STREAM, now=now())
    newest = max(row["audit_id"] for row in audits if row["status"] == "published")
    assert report(config, out, f"--audit={newest}") == ExitCode.DONE
    assert "published nothing" not in out.read_text()


def test_a_stream_without_an_audit_has_a_report_that_says_so(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "none.html"
    assert report(config, out, "--stream=orders") == ExitCode.DONE
    assert json.loads(capsys.readouterr().out)["verdict"] == "unknown"
    assert "never audited" in out.read_text()
    assert "<dt>Open findings</dt><dd>–</dd>" in out.read_text()


def test_a_gap_is_counted_beside_the_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, out = tmp_path / "shardaudit.toml", tmp_path / "report.html"
    config.write_text(CONFIG)
    write_warehouse(tmp_path / "warehouse", now=now(), shards=2, bucket=timedelta(hours=1))
    start = now().replace(minute=0, second=0, microsecond=0) - timedelta(days=1)
    hour = timedelta(hours=1)
    times = {"bucket_start": start, "bucket_end": start + hour, "recoverable_until": now() + hour}
    gap = {"stream": STREAM, "shard_id": "s", "cause": "lost", "state": "open", "count": 9}
    write_rows(tmp_path / "warehouse", GAPS, [gap | times])
    command = ["--config", str(config), "report", f"--stream={STREAM}", f"--out={out}"]
    assert main(command) == ExitCode.DONE
    assert " findings, 1 gap" in " ".join(capsys.readouterr().out.split())
