"""The page in a real Airflow, used as a person does: looked at, pointed at, clicked."""

import re
from http.client import HTTPConnection
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Site, menu_entry
from tests.browser.steps import frame, opened, point, wait_until_known
from tests.page_warehouse import HOSTILE, shard_name

ROW, HOUR = 5, 30  # in the loss that the warehouse has
PATHS = ("/", "/stream", "/shard", "/findings.csv", "/page.css", "/page.js")


@pytest.fixture(autouse=True)
def _nothing_goes_wrong(site: Site) -> None:
    """No script of a message id ran, none of ours failed, and the policy stopped nothing."""
    site.wrong.clear()


@pytest.mark.parametrize("path", PATHS)
def test_nobody_gets_in_without_a_login(site: Site, path: str) -> None:
    address = urlsplit(site.url)
    connection = HTTPConnection(str(address.hostname), address.port or 80, timeout=20)
    connection.request("GET", f"/shardaudit{path}")
    answer = connection.getresponse()
    assert answer.status == 401
    assert b"shardId" not in answer.read()
    connection.close()


def test_the_menu_leads_to_the_streams_and_none_looks_better_than_it_is(site: Site) -> None:
    site.page.goto(f"{site.url}/")
    menu_entry(site.page).click()
    rows = frame(site.page).locator("table.streams tbody tr")
    expect(rows.nth(0)).to_contain_text("silent")
    expect(rows.nth(0)).to_contain_text("283 missing")
    expect(rows.nth(1)).to_contain_text("never audited")
    expect(rows.nth(1).locator(".mark-ok")).to_have_count(0)
    rows.nth(0).get_by_role("link", name="events").click()
    expect(frame(site.page).locator("h1")).to_contain_text("events")
    assert site.wrong == []


def test_a_place_says_its_numbers_when_it_is_pointed_at(site: Site) -> None:
    inside = opened(site, "stream?stream=events")
    point(site, row=ROW, hour=HOUR)
    tip = inside.locator(".tip")
    expect(tip).to_contain_text(shard_name(ROW))
    expect(tip).to_contain_text("loss: acknowledged messages were passed over")
    expect(tip).to_contain_text(re.compile(r"missing \((1\.9|2\.0) %\)"))
    point(site, row=ROW + 1, hour=HOUR)
    expect(tip).to_contain_text("ok: each acknowledged message landed exactly once")
    assert site.wrong == []


def test_a_click_goes_to_the_messages_and_the_address_can_be_shared(site: Site) -> None:
    opened(site, "stream?stream=events")
    point(site, row=ROW, hour=HOUR, click=True)
    inside = frame(site.page)
    expect(inside.locator("h1")).to_contain_text(shard_name(ROW))
    expect(inside.locator("table.cells")).to_contain_text("loss")
    site.page.wait_for_url(re.compile(r"/plugin/shardaudit/shardaudit/shard\?"))
    query = parse_qs(urlsplit(site.page.url).query)
    assert query["first"] == [shard_name(ROW)]
    again = site.watch(site.context.new_page())
    again.goto(site.page.url)
    expect(frame(again).locator("h1")).to_contain_text(shard_name(ROW))
    again.close()
    assert site.wrong == []


def test_the_keyboard_alone_gets_there_too(site: Site) -> None:
    inside = opened(site, "stream?stream=events")
    map_ = inside.locator("#map svg")
    # Keys that are pressed before the page's script listens are lost. The map's own document is
    # asked: a frame's first, empty one is complete at once.
    map_.evaluate(
        "() => document.readyState === 'complete' || "
        "new Promise(done => window.addEventListener('load', done))"
    )
    for key in ("ArrowDown", *["ArrowDown"] * ROW, "ArrowRight"):
        map_.press(key)
    expect(inside.locator(".tip")).to_contain_text(shard_name(ROW))
    site.page.keyboard.press("Enter")
    expect(frame(site.page).locator("h1")).to_contain_text(shard_name(ROW))


def test_hostile_ids_are_shown_and_findings_are_filtered(site: Site) -> None:
    shard = shard_name(ROW)
    inside = opened(site, f"shard?stream=events&first={shard}&last={shard}")
    for message_id in HOSTILE:
        expect(inside.locator(f"td.id[title='{message_id}']")).to_have_count(1)
    inside.locator("table.findings details summary").first.click()
    expect(inside.locator("table.findings details[open]")).to_contain_text("orders")
    inside.get_by_label("State").select_option("recovered")
    inside.get_by_label("Id has").fill("message-017")
    inside.get_by_role("button", name="Filter").click()
    rows = frame(site.page).locator("table.findings tbody tr")
    expect(rows).to_have_count(10)
    expect(rows.first).to_contain_text("recovered")
    with site.page.expect_download() as saving:
        frame(site.page).get_by_role("link", name="Download as CSV").click()
    assert saving.value.suggested_filename == "findings.csv"
    assert len(saving.value.path().read_text().splitlines()) == 11
    assert site.wrong == []


def test_a_backfill_is_filled_in_started_and_found_in_airflow(site: Site) -> None:
    wait_until_known(site)
    opened(site, "stream?stream=events")
    point(site, row=ROW, hour=HOUR, click=True)
    inside = frame(site.page)
    expect(inside.locator("h1")).to_contain_text(shard_name(ROW))
    inside.get_by_role("button", name="Backfill this").click()
    dialog = inside.get_by_role("dialog")
    expect(dialog.get_by_label("Shards")).to_have_value(shard_name(ROW))
    expect(dialog).to_contain_text("a person")
    dialog.get_by_label("all that was sent in this time").check()
    dialog.get_by_role("button", name="Start the backfill").click()
    link = dialog.locator(".done a")
    expect(link).to_contain_text("manual__")
    run_id = link.inner_text()
    expect(dialog.locator(".waiting")).to_be_visible()  # its DAG is switched off here
    assert site.api.run_state("backfill", run_id) == "queued"
    link.click()
    site.page.wait_for_url(
        lambda address: unquote(address).endswith(f"/dags/backfill/runs/{run_id}")
    )
    expect(site.page.locator("iframe[title=Shardaudit]")).to_have_count(0)
    assert site.wrong == []


def test_what_airflow_refuses_is_told_in_the_dialog(site: Site) -> None:
    inside = opened(site, "stream?stream=events")
    inside.get_by_role("button", name="Backfill this").click()
    dialog = inside.get_by_role("dialog")
    dialog.get_by_label("Shards").fill("a;rm")
    dialog.get_by_role("button", name="Start the backfill").click()
    expect(dialog.locator(".error")).to_contain_text("Airflow answered 4")
    expect(dialog.get_by_role("button", name="Start the backfill")).to_be_enabled()


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_page_follows_airflows_theme(site: Site, theme: str) -> None:
    site.page.goto(f"{site.url}/")
    site.page.evaluate("theme => localStorage.setItem('theme', theme)", theme)
    inside = opened(site, "stream?stream=events")
    expect(inside.locator(f"html[data-theme={theme}]")).to_have_count(1)
