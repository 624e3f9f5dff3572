"""The page's door into Airflow's api-server: its routes, behind Airflow's login and permissions.

An app of a plugin is public unless it says otherwise: each route here depends on the user, and on
the right to see the DAG whose results it shows.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep, get_user, requires_access_dag
from airflow.models.dag import DagModel
from fastapi import Depends, FastAPI, Request, Response
from fastapi.responses import StreamingResponse

from shardaudit.model.errors import ConfigError, FinalError, ShardauditError

log = logging.getLogger(__name__)

SHOWN_DAG, TRIGGERED_DAG = "nightly_audit", "backfill"
# Of our own: whoever waits for a warehouse waits for none of Airflow's threads.
_AT_ONCE = 4
_SLOW = (
    "The warehouse has not answered within {:.0f} seconds. Others may be reading it, or its "
    "storage is slow: try again, with a shorter time or one shard."
)
_HEADERS = {
    # Nothing from anywhere else, no inline script or style, in no other site's frame.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'self'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """What a page says. `filename`: it is to be saved, and may be long."""

    body: str | Iterator[str]
    media_type: str = "text/html; charset=utf-8"
    filename: str | None = None


@dataclass(frozen=True, slots=True)
class Rights:
    """What Airflow lets the user do: start a backfill, and see what bears a resource's name."""

    may_backfill: bool
    may_see: Callable[[str], bool]


class HiddenStreamError(FinalError, PermissionError):
    """Airflow does not let the user see the stream, or there is none: which, is not said."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no stream {name!r} that your roles in Airflow show you.")


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages by their paths, and the one that tells a problem (its title, its words).

    A page gets its address's parameters, and the user's rights. `longest_s`: what nobody waits
    for any longer.
    """

    by_path: Mapping[str, Callable[[Mapping[str, str], Rights], PageAnswer]]
    problem: Callable[[str, str], PageAnswer]
    longest_s: float = 20.0


def page_app(pages: Pages) -> FastAPI:
    """The app with a GET route for each page, and nothing else."""
    app = FastAPI(
        dependencies=[
            Depends(get_user),
            Depends(requires_access_dag("GET", param_dag_id=SHOWN_DAG)),
        ],
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="shardaudit page")
    for path, page in pages.by_path.items():
        route = _route(pages, page, threads)
        app.add_api_route(path, route, methods=["GET"], response_model=None)

    @app.middleware("http")
    async def harden(
        request: Request, answer: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        response = await answer(request)
        response.headers.update(_HEADERS)
        return response

    return app


_Page = Callable[[Mapping[str, str], Rights], PageAnswer]


def _route(
    pages: Pages, page: _Page, threads: ThreadPoolExecutor
) -> Callable[[Request, GetUserDep], Awaitable[Response]]:
    async def shown(request: Request, user: GetUserDep) -> Response:
        show = partial(_shown, pages, page, request.query_params, user)
        answer = asyncio.get_running_loop().run_in_executor(threads, show)
        try:
            return await asyncio.wait_for(answer, pages.longest_s)
        except TimeoutError:
            words = _SLOW.format(pages.longest_s)
            return _response(pages.problem("Nothing can be said now", words), status=503)

    return shown


def _shown(pages: Pages, page: _Page, given: Mapping[str, str], user: GetUserDep) -> Response:
    try:
        return _response(page(given, rights_of(user)))
    except HiddenStreamError as error:
        return _response(pages.problem("This is not shown", str(error)), status=403)
    except ConfigError as error:
        return _response(pages.problem("This cannot be shown", str(error)), status=400)
    except ShardauditError as error:
        number = uuid4().hex[:8]  # the words may name paths, which a viewer need not know
        log.warning("error %s: the page cannot be shown: %s", number, error)
        said = f"The warehouse does not answer as it should: error {number} in the server's log."
        return _response(pages.problem("Nothing can be said now", said), status=503)


def rights_of(user: GetUserDep) -> Rights:
    """What Airflow lets the user do, as its own routes ask."""
    manager, team = get_auth_manager(), DagModel.get_team_name(TRIGGERED_DAG)
    may_backfill = manager.is_authorized_dag(
        method="POST",
        access_entity=DagAccessEntity.RUN,
        details=DagDetails(id=TRIGGERED_DAG, team_name=team),
        user=user,
    )

    def may_see(resource: str) -> bool:
        return manager.is_authorized_custom_view(method="GET", resource_name=resource, user=user)

    return Rights(may_backfill, may_see)


def _response(answer: PageAnswer, *, status: int = 200) -> Response:
    if isinstance(answer.body, str):
        return Response(answer.body, status_code=status, media_type=answer.media_type)
    saved = {"Content-Disposition": f'attachment; filename="{answer.filename}"'}
    return StreamingResponse(answer.body, media_type=answer.media_type, headers=saved)
