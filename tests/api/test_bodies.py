"""Types in and out, limits, and the one shape of every problem."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterator

import httpx2
import pytest
import yaml

from sublet.api.bodies import LIMIT
from sublet.server.app import openapi_document
from tests.api import documents
from tests.api.conftest import Callers
from tests.api.documents import CONTAINER

pytestmark = pytest.mark.anyio

JSON, YAML = "application/json", "application/yaml"
XML = "application/xml"


@pytest.mark.parametrize(
    ("sent", "accept", "answered"),
    [
        (JSON, None, JSON),
        (YAML, None, YAML),
        (JSON, "*/*", JSON),
        (YAML, "*/*", YAML),
        ("text/yaml", "application/*", YAML),
        (JSON, YAML, YAML),
        (YAML, JSON, JSON),
        (JSON, "text/yaml", "text/yaml"),
        (JSON, "application/x-yaml", "application/x-yaml"),
        (JSON, f"{XML}, {YAML};q=0.5", YAML),
        (JSON, f"{YAML};q=0.2, {JSON};q=0.9", JSON),
        (JSON, f"{JSON};q=0, */*", JSON),
        ("", "*/*", JSON),
    ],
)
async def test_the_answer_has_the_type_that_is_accepted_else_the_one_that_was_sent(
    ann: httpx2.AsyncClient, sent: str, accept: str | None, answered: str
) -> None:
    body = json.dumps(documents.minimal())  # JSON is YAML too
    headers = {"content-type": sent} if sent else {}
    request = ann.build_request("POST", "/requests", content=body, headers=headers | {"accept": accept or ""})
    if accept is None:
        del request.headers["accept"]
    answer = await ann.send(request)
    assert answer.status_code == 303, answer.text
    assert answer.headers["content-type"].partition(";")[0] == answered
    said = answer.json() if answered == JSON else yaml.safe_load(answer.text)
    assert said["result"] == "YES"


async def test_a_look_without_a_word_is_answered_in_json(ann: httpx2.AsyncClient) -> None:
    made = await ann.post("/requests", json=documents.minimal())
    looked = await ann.get(made.headers["location"], headers={"accept": "*/*"})
    assert looked.headers["content-type"] == JSON


@pytest.mark.parametrize("accept", [XML, "text/html", "image/*", f"{JSON};q=0", "nonsense", f"{JSON};q=x"])
async def test_what_can_only_be_had_otherwise_is_a_406_and_nothing_is_held(
    ann: httpx2.AsyncClient, accept: str
) -> None:
    answer = await ann.post("/requests", json=documents.minimal(), headers={"accept": accept})
    assert (answer.status_code, answer.json()["code"]) == (406, "not-acceptable")
    assert (await ann.get("/v1/sessions")).json()["items"] == []


@pytest.mark.parametrize("kind", [XML, "text/plain", "multipart/form-data", "image/png", "application/json; charset=x"])
async def test_a_body_of_another_type_is_a_415(ann: httpx2.AsyncClient, kind: str) -> None:
    for path in ("/requests", "/direct", "/v1/offersets"):
        answer = await ann.post(path, content=b"{}", headers={"content-type": kind})
        assert (answer.status_code, answer.json()["code"]) == (415, "wrong-type")


async def test_a_document_beyond_the_limit_is_a_413_whether_or_not_it_says_its_length(ann: httpx2.AsyncClient) -> None:
    read = 0

    async def ten_megabytes() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(160):
            read += 1
            yield b" " * 65536

    for content in (b" " * (10 * 1024 * 1024), ten_megabytes()):
        answer = await ann.post("/requests", content=content, headers={"content-type": JSON})
        assert (answer.status_code, answer.json()["code"]) == (413, "too-large")


async def test_no_address_reads_more_of_a_strangers_body_than_a_document_may_have(
    anonymous: httpx2.AsyncClient,
) -> None:
    for path, methods in openapi_document()["paths"].items():
        for method in {"post", "put", "patch", "delete"} & set(methods):
            read = 0

            async def endless() -> AsyncIterator[bytes]:
                nonlocal read
                while read < 8 * LIMIT:
                    read += 65536
                    yield b" " * 65536

            address = re.sub(r"{\w+}", "x", path)
            answer = await anonymous.request(method, address, content=endless(), headers={"content-type": JSON})
            assert answer.status_code in (400, 401, 404, 409, 413, 422), (method, path, answer.status_code)
            assert read <= LIMIT + 2 * 65536, (method, path)
            assert len(answer.content) < 10_000, (method, path)


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", JSON),
        (b"{", JSON),
        (b"[]", JSON),
        (b'"text"', JSON),
        (b"null", YAML),
        (b"\xff\xfe\x00binary", YAML),
        (b"\x89PNG\r\n\x1a\n\x00\x00", JSON),
        (b"[" * 100_000, JSON),
        (b"[" * 100_000, YAML),
        (b"{a: [", YAML),
        (b"!!python/object/apply:os.system ['true']", YAML),
        (BOMB.encode(), YAML),
        (b'{"executable": 7}', JSON),
        (b'{"colour": "blue"}', JSON),
    ],
)
async def test_what_is_no_request_is_a_400_that_says_what_is_wrong(
    ann: httpx2.AsyncClient, body: bytes, kind: str
) -> None:
    answer = await ann.post("/requests", content=body, headers={"content-type": kind})
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["status"]) == (400, "bad-request", 400)
    assert problem["detail"]
    assert (await ann.get("/health")).status_code == 200


@pytest.mark.parametrize(
    ("block", "field"),
    [
        ({"compute": {"kind": documents.SIMPLE, "cores": {"min": "many"}}}, "compute.cores"),
        ({"schedule": {"requested": {"duration": 90}}}, "schedule.requested.duration"),
        ({"schedule": {"requested": {"start": "2026-12-01T25:00:00Z"}}}, "schedule.requested.start"),
        ({"schedule": {"requested": {"start": "whenever", "duration": "PT1H"}}}, "schedule.requested.start"),
        ({"compute": "large"}, "compute"),
    ],
)
async def test_a_field_of_another_type_is_a_400_that_names_it(
    ann: httpx2.AsyncClient, block: dict[str, object], field: str
) -> None:
    answer = await ann.post("/requests", json=documents.minimal() | block)
    assert (answer.status_code, answer.json()["title"]) == (400, "Bad Request")
    assert field in answer.json()["detail"]


async def test_a_name_that_looks_like_a_command_is_a_name(ann: httpx2.AsyncClient) -> None:
    name = "x;$(touch /tmp/never) `id`"
    answer = await ann.post("/requests", json={"executable": CONTAINER | {"meta": {"name": name}}})
    assert answer.json()["offers"][0]["executable"]["meta"]["name"] == name


async def test_cookies_authorise_nothing(ann: httpx2.AsyncClient, callers: Callers) -> None:
    token = ann.headers["authorization"].partition(" ")[2]
    cookie = await callers.with_headers({"cookie": f"sublet={token}; session={token}; token={token}"})
    assert (await cookie.post("/requests", json=documents.minimal())).status_code == 401
    assert (await cookie.get("/v1/sessions")).status_code == 401


async def test_a_token_may_come_as_the_password_of_a_basic_login(ann: httpx2.AsyncClient, callers: Callers) -> None:
    token = ann.headers["authorization"].partition(" ")[2]
    basic = base64.b64encode(f"anyone:{token}".encode()).decode()
    caller = await callers.with_headers({"authorization": f"Basic {basic}"})
    assert (await caller.get("/v1/whoami")).json() == (await ann.get("/v1/whoami")).json()


@pytest.mark.parametrize(
    "value", ["Bearer", "Bearer nonsense", "Basic !!!", "Basic", "Digest x", "\xff", "Bearer \xe9"]
)
async def test_what_is_no_token_lets_nobody_in(callers: Callers, value: str) -> None:
    transport = httpx2.ASGITransport(app=callers.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://broker.test") as caller:
        answer = await caller.get("/v1/whoami", headers={"authorization": value.encode("latin-1")})
    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/requests", 405),
        ("DELETE", "/v1/whoami", 405),
        ("PUT", "/sessions/7c1f6b1e-8d43-4b0a-9e55-6a3f0a1d2b3c", 405),
        ("GET", "/v1/sessions?limit=0", 400),
        ("GET", "/v1/sessions?phase=HAPPY", 400),
        ("GET", "/v1/calendar?start=yesterday", 400),
        ("POST", "/v1/tokens", 400),
        ("GET", "/v1/platforms/none", 404),
    ],
)
async def test_every_problem_has_the_same_shape(ann: httpx2.AsyncClient, method: str, path: str, status: int) -> None:
    answer = await ann.request(method, path)
    problem = answer.json()
    assert answer.status_code == problem["status"] == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert set(problem) - {"errors"} == {"type", "title", "status", "code", "detail", "hint"}
    if status == 405:
        assert answer.headers["allow"]


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/v1/sessions/cancel", "POST"), ("/v1/offersets/pending", "GET"), ("/v1/tus/a-file", "DELETE, GET, PATCH")],
)
async def test_a_wrong_method_is_told_those_of_this_very_address(
    ann: httpx2.AsyncClient, path: str, allowed: str
) -> None:
    answer = await ann.request("POST" if "tus" in path else "PUT", path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
