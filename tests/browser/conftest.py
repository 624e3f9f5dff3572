"""A local Airflow over a warehouse with planted trouble, and the Chromium of the system."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Locator,
    Page,
    expect,
    sync_playwright,
)

from shardaudit.adapters.clock import now
from tests.page_warehouse import write_warehouse
from tools.airflow_api import AirflowApi
from tools.airflow_home import USER, password
from tools.airflow_processes import LocalAirflow

PATIENCE = 60_000  # ms; two busy cores took more than the 5 seconds that Playwright waits
BROWSERS = ("chromium", "google-chrome", "google-chrome-stable", "chrome")
CONFIG = """
warehouse = "warehouse"
[streams.events]
stream_name = "events"
bucket = "5m"
retention = "168h"
traces = { path = "traces" }
sink = { path = "sink" }
[streams.orders]
stream_name = "orders"
traces = { path = "traces" }
sink = { path = "sink" }
"""


@dataclass
class Site:
    """The running Airflow, with a page in it that is logged in, and what went wrong there."""

    url: str
    api: AirflowApi
    page: Page
    context: BrowserContext
    wrong: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> Page:
        """The page, whose scripts' dialogs, errors and foreign addresses are written down."""
        page.on("dialog", self._dialog)
        page.on("pageerror", lambda error: self.wrong.append(f"script: {error}"))
        page.on("console", self._console)
        return page

    def _dialog(self, dialog: Dialog) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _console(self, message: ConsoleMessage) -> None:
        ours = "/shardaudit/" in message.location.get("url", "")
        if message.type == "error" and (ours or "Content Security Policy" in message.text):
            self.wrong.append(f"console: {message.text}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks this folder's tests."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAirflow]:
    """An Airflow whose DAGs are known and switched off: a run that is started only waits."""
    folder = tmp_path_factory.mktemp("airflow")
    (folder / "shardaudit.toml").write_text(CONFIG)
    write_warehouse(folder / "warehouse", now=now())
    with LocalAirflow(folder / "home", folder / "shardaudit.toml") as running:
        yield running


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The system's browser, without a window."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert found, "no Chromium: apt-get install chromium (Debian), or install Chrome (macOS)"
    with sync_playwright() as playwright:
        # Inside a container root has no sandbox; the pages are our own.
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def site(airflow: LocalAirflow, chromium: Browser) -> Site:
    """A browser that is logged in to the Airflow of the planted warehouse."""
    return logged_in(airflow, chromium)


def logged_in(airflow: LocalAirflow, chromium: Browser) -> Site:
    """A browser that came in by Airflow's own form."""
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    context.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    found = Site(airflow.url, airflow.api(), context.new_page(), context)
    found.watch(found.page)
    found.page.goto(f"{airflow.url}/")
    found.page.locator("input[name=username]").fill(USER)
    found.page.locator("input[name=password]").fill(password(airflow.home))
    found.page.get_by_role("button", name="Sign in").click()
    menu_entry(found.page).wait_for()
    return found


def menu_entry(page: Page) -> Locator:
    """Ours, in Airflow's menu."""
    link = page.get_by_role("link", name="Shardaudit")
    return link.or_(page.get_by_role("button", name="Shardaudit")).first
