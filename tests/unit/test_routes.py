"""The index of routes chooses as FastAPI would, for every route of the service and for paths that are nobody's."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.routing import BaseRoute, Match, Mount, Route

from sublet.server.app import NOUNS
from sublet.server.routes import IndexedRouter


async def answer(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("no request is answered here")


def make_scope(path: str, method: str = "GET") -> dict[str, Any]:
    return {"type": "http", "path": path, "method": method, "root_path": "", "headers": []}


def choose_one_by_one(routes: list[BaseRoute], scope: dict[str, Any]) -> BaseRoute | None:
    return next((route for route in routes if route.matches(dict(scope))[0] == Match.FULL), None)


def choose_by_index(router: IndexedRouter, scope: dict[str, Any]) -> BaseRoute | None:
    candidates = router._find_candidates(scope["path"])
    return next((route for route in candidates if route.matches(dict(scope))[0] == Match.FULL), None)


ROUTES: list[BaseRoute] = [route for noun in NOUNS for route in noun.router.routes]
OTHERS: list[BaseRoute] = [Mount("/web", app=answer), Route("/", answer), Route("/{anything:path}/tail", answer)]


@pytest.mark.parametrize("extra", ["", "/", "/x", "/x/tail"])
def test_each_route_is_chosen_as_if_all_were_tried(extra: str) -> None:
    router = IndexedRouter(routes=[*ROUTES, *OTHERS])
    paths = {re.sub(r"[{}]|:path", "", str(getattr(route, "path", "/"))) for route in ROUTES}
    for path in {*paths, "/", "", "//", "/web", "/web/x", "/nobody", "/nobody/knows/it", "/v1"}:
        for method in ("GET", "POST", "DELETE"):
            scope = make_scope(path + extra, method)
            assert choose_by_index(router, scope) is choose_one_by_one(router.routes, scope), (path, method)


def test_few_routes_are_tried() -> None:
    router = IndexedRouter(routes=ROUTES)
    tried = router._find_candidates("/v1/sessions/some-id")
    assert 0 < len(tried) < len(ROUTES) / 5


def test_a_route_that_is_added_later_is_tried_too() -> None:
    router = IndexedRouter(routes=[Route("/a", answer)])
    assert choose_by_index(router, make_scope("/b")) is None
    late = Route("/b", answer)
    router.routes.append(late)
    assert choose_by_index(router, make_scope("/b")) is late


def test_unknown_paths_do_not_fill_the_index() -> None:
    router = IndexedRouter(routes=ROUTES)
    for number in range(1000):
        router._find_candidates(f"/{number}/{number}")
    assert len(router._index) == 1


def test_a_path_without_its_method_is_a_405_and_an_unknown_path_a_404() -> None:
    app = FastAPI()
    app.router = IndexedRouter(routes=[], redirect_slashes=False, dependency_overrides_provider=app)
    app.get("/a")(lambda: "here")
    assert [ask(app, "/a", "GET"), ask(app, "/a", "POST"), ask(app, "/b", "GET")] == [200, 405, 404]


def ask(app: FastAPI, path: str, method: str) -> int:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {**make_scope(path, method), "query_string": b"", "http_version": "1.1", "asgi": {"version": "3.0"}}
    asyncio.run(app(scope, receive, send))
    return int(sent[0]["status"])
