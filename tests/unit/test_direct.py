"""Endpoints that read their request themselves are called at once; all others go through FastAPI."""

from __future__ import annotations

from typing import Annotated

import pytest
from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Path, Query, Request, Response
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
async def query(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=9)] = 3,
    active: bool | None = None,
    names: Annotated[list[str] | None, Query()] = None,
    called: Annotated[str, Query(alias="name")] = "",
) -> Response:
    """Takes parts of the query, some of which have to be checked."""
    return Response(f"{limit} {active} {names} {called}")


async def read_limits(limit: int = 1, most: int = 2) -> tuple[int, int]:
    """Take two parts of the query."""
    return limit, most


async def read_kept(request: Request, limits: Annotated[tuple[int, int], Depends(read_limits)]) -> str:
    """Take a header, and what another function returns."""
    if "x-refused" in request.headers:
        raise HTTPException(418, "refused")
    return f"{limits} {request.headers.get('x-kept')}"


@router.post("/kept")
async def keep(request: Request, kept: Annotated[str, Depends(read_kept)], most: int = 5) -> Response:
    """Takes what functions return that read the request, and its body."""
    return Response(f"{kept} {most} {(await request.body()).decode()}")


@router.get("/headers")
async def header(request: Request, x_kept: Annotated[str, Header()] = "") -> Response:
    """Takes a header by its name."""
    return Response(x_kept)


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


@pytest.fixture
def by_fastapi() -> TestClient:
    app = FastAPI()
    app.router.routes.extend(router.routes)
    return TestClient(app)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/plain/a%20b/c/d?q=e", "a b c/d e"),
        ("/numbers/4", "5"),
        ("/values", '{"one":1}'),
        ("/threads/x", "x"),
    ],
)
def test_all_answer_as_they_are_written(client: TestClient, path: str, answer: str) -> None:
    assert client.get(path).text == answer


@pytest.mark.parametrize("path", ["/numbers/four", "/queries?limit=x", "/kept?most=x"])
def test_what_has_to_be_checked_is_checked(client: TestClient, path: str) -> None:
    assert client.request("POST" if path.startswith("/kept") else "GET", path).status_code == 422


@pytest.mark.parametrize(
    "query",
    [
        "",
        "limit=5",
        "limit=5&limit=6",
        "limit=",
        "limit=0",
        "limit=%205",
        "limit=5.0",
        "active=yes",
        "active=",
        "active=2",
        "names=a&names=b",
        "name=%C3%A4&other=1",
        "name=&called=x",
        "limit=x&active=y",
    ],
)
def test_a_query_is_read_as_fastapi_reads_it(client: TestClient, by_fastapi: TestClient, query: str) -> None:
    answers = [each.get(f"/queries?{query}") for each in (client, by_fastapi)]
    assert answers[0].status_code == answers[1].status_code
    assert answers[0].content == answers[1].content


@pytest.mark.parametrize("query", ["", "limit=7", "most=8", "limit=7&most=8", "limit=x", "most=x&limit=y"])
@pytest.mark.parametrize("headers", [{}, {"x-kept": "k"}, {"x-refused": "yes"}])
def test_what_an_endpoint_depends_on_is_read_as_fastapi_reads_it(
    client: TestClient, by_fastapi: TestClient, query: str, headers: dict[str, str]
) -> None:
    answers = [each.post(f"/kept?{query}", content=b"body", headers=headers) for each in (client, by_fastapi)]
    assert answers[0].status_code == answers[1].status_code
    assert answers[0].content == answers[1].content


CALLED_DIRECTLY = {
    ("POST", "/v1/offersets"),
    ("POST", "/v1/sessions/{id}/accept"),
    ("GET", "/v1/sessions/{id}"),
    ("GET", "/v1/sessions"),
    ("GET", "/v1/events"),
}


def test_what_clients_call_most_is_called_directly_and_what_takes_a_body_is_not() -> None:
    routes = [route for noun in NOUNS for route in noun.router.routes if isinstance(route, APIRoute)]
    direct = {
        (method, route.path) for route in routes if call_directly(route) is not route for method in route.methods or ()
    }
    assert direct >= CALLED_DIRECTLY
    assert ("POST", "/v1/sessions/cancel") not in direct
