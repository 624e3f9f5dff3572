"""The plugin that Airflow finds by the package's entry point: a place in the menu, a tab on DAGs.

Every process of Airflow imports it, the scheduler included; the page and what it reads with are
imported by the api-server alone, while it starts.
"""

import os
from functools import cache
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from airflow.plugins_manager import AirflowPlugin

from shardaudit.model.config.parts import CONFIG
from shardaudit.page.page_state import PREFIX

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp, Receive, Scope, Send

    from shardaudit.model.config.settings import Settings


async def page(scope: "Scope", receive: "Receive", send: "Send") -> None:
    """The page as the api-server calls it."""
    await made_app()(scope, receive, send)


def prepared(app: "ASGIApp") -> "ASGIApp":
    """The api-server's own app as it is; beside it the page is imported, before anybody waits.

    Airflow calls this as a middleware: once, when the api-server starts, and in no other process.
    """
    Thread(target=made_app, name="shardaudit page", daemon=True).start()
    return app


class ShardauditPlugin(AirflowPlugin):
    """What Airflow is told."""

    name = "shardaudit"
    fastapi_apps = [  # noqa: RUF012 - as Airflow declares it
        {"app": page, "url_prefix": f"/{PREFIX}", "name": "shardaudit"}
    ]
    fastapi_root_middlewares = [{"middleware": prepared, "name": "shardaudit"}]  # noqa: RUF012
    external_views = [  # noqa: RUF012
        {
            "name": "Shardaudit",
            "href": f"{PREFIX}/",  # relative: Airflow may live under a path
            "destination": destination,
            "url_route": route,
            **more,
        }
        for destination, route, more in (
            ("nav", "shardaudit", {"nav_top_level": True}),
            ("dag", "shardaudit-streams", {}),
        )
    ]


@cache
def made_app() -> "FastAPI":
    """The page's app, made once; imports what it reads with."""
    from shardaudit.adapters.clock import now  # noqa: PLC0415
    from shardaudit.page.airflow_door import page_app  # noqa: PLC0415 - see above
    from shardaudit.page.site import Site  # noqa: PLC0415

    return page_app(Site(_settings, now).pages())


def _settings() -> "Settings":
    from shardaudit.model.config.settings import load_settings  # noqa: PLC0415
    from shardaudit.model.errors import ConfigError  # noqa: PLC0415

    file = os.environ.get(CONFIG)
    if not file:
        raise ConfigError(CONFIG, "nothing", "the path of the shardaudit.toml, for the api-server")
    return load_settings(Path(file))
