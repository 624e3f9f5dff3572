"""What a person does on the page: opens, points, clicks, waits."""

import time

from playwright.sync_api import FrameLocator, Page

from tests.browser.conftest import Site


def frame(page: Page) -> FrameLocator:
    return page.frame_locator("iframe[title=Shardaudit]")


def opened(site: Site, path: str) -> FrameLocator:
    """The page of ours, inside Airflow's."""
    site.page.goto(f"{site.url}/plugin/shardaudit/shardaudit/{path}")
    return frame(site.page)


def point(site: Site, *, row: int, hour: float, click: bool = False) -> None:
    """Points at a place of the map, by its own numbers."""
    inside = frame(site.page)
    map_ = inside.locator("#map svg")
    map_.scroll_into_view_if_needed()
    x, y = map_.evaluate(
        """(svg, [row, hour]) => {
          const map = JSON.parse(document.getElementById("map-data").textContent);
          const scale = svg.clientWidth / map.width;
          const bin = Math.floor((hour * 3600e3) / map.step);
          return [(map.left + (bin + 0.5) * map.cellWidth) * scale,
                  (map.top + (row + 0.5) * map.cellHeight) * scale];
        }""",
        [row, hour],
    )
    if click:
        map_.click(position={"x": x, "y": y})
    else:
        map_.hover(position={"x": x, "y": y})


def wait_until_known(site: Site) -> None:
    """Until the DAG's file was read; a minute is much."""
    for _ in range(120):
        if site.api.knows("backfill"):
            return
        time.sleep(0.5)
    raise AssertionError(site.api.import_errors())
