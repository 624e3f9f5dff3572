"""The report as a file in a browser: no network, and a policy that lets its own script run."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from shardaudit.adapters.clock import now
from shardaudit.cli.main import main
from shardaudit.model.exit_code import ExitCode
from tests.browser.conftest import CONFIG
from tests.page_warehouse import shard_name, write_warehouse


def test_the_report_shows_its_numbers_without_a_network(chromium: Browser, tmp_path: Path) -> None:
    (tmp_path / "shardaudit.toml").write_text(CONFIG)
    write_warehouse(tmp_path / "warehouse", now=now())
    out = tmp_path / "report.html"
    config = str(tmp_path / "shardaudit.toml")
    assert main(["--config", config, "report", "--stream=events", f"--out={out}"]) == ExitCode.DONE
    wrong: list[str] = []
    page = chromium.new_page(viewport={"width": 1400, "height": 900}, offline=True)
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(out.as_uri())
    page.locator("#map svg").focus()
    for _ in range(6):
        page.keyboard.press("ArrowDown")
    expect(page.locator(".tip")).to_contain_text(shard_name(5))
    expect(page.locator("td.id").first).to_have_text("<script>alert(1)</script>")
    assert (wrong, asked) == ([], [out.as_uri()])
    page.close()
