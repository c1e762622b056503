"""Endpoints that read their request themselves are called at once; all others go through FastAPI."""

from __future__ import annotations

from typing import Annotated

import pytest
from fastapi import APIRouter, FastAPI, Path, Request, Response
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from sublet.server.app import NOUNS
from sublet.server.direct import call_directly

router = APIRouter()


@router.get("/plain/{name}/{rest:path}")
async def plain(request: Request, name: Annotated[str, Path(description="A name.")], rest: str) -> Response:
    """Takes nothing that has to be read."""
    return Response(f"{name} {rest} {request.query_params.get('q', '')}")


@router.get("/numbers/{number}")
async def number(request: Request, number: int) -> Response:
    """Takes a number, which has to be one."""
    return Response(str(number + 1))


@router.get("/queries")
async def query(request: Request, limit: int = 3) -> Response:
    """Takes a part of the query."""
    return Response(str(limit))


@router.get("/values")
async def value(request: Request) -> dict[str, int]:
    """Answers with what has to be written yet."""
    return {"one": 1}


@router.get("/threads/{name}")
def thread(request: Request, name: str) -> Response:
    """Has to be run in a thread."""
    return Response(name)


@pytest.fixture
def client() -> TestClient:
    app = FastAPI()
    app.router.routes.extend(call_directly(route) for route in router.routes)
    return TestClient(app)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/plain/a%20b/c/d?q=e", "a b c/d e"),
        ("/numbers/4", "5"),
        ("/queries", "3"),
        ("/queries?limit=5", "5"),
        ("/values", '{"one":1}'),
        ("/threads/x", "x"),
    ],
)
def test_all_answer_as_they_are_written(client: TestClient, path: str, answer: str) -> None:
    assert client.get(path).text == answer


@pytest.mark.parametrize("path", ["/numbers/four", "/queries?limit=x"])
def test_what_has_to_be_checked_is_checked(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 422


def test_a_look_at_a_session_and_its_acceptance_are_called_at_once() -> None:
    routes = [route for noun in NOUNS for route in noun.router.routes if isinstance(route, APIRoute)]
    made = {
        route.path: route.app for route in routes if route.path in ("/v1/sessions/{id}", "/v1/sessions/{id}/accept")
    }
    assert len(made) == 2
    for route in routes:
        before = route.app
        call_directly(route)
        if route.path == "/v1/sessions/{id}/accept":
            assert route.app is not before
        if route.path == "/v1/sessions":
            assert route.app is before
