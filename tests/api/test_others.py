"""Every address that the service describes, walked by those whom its things do not belong to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from sublet.api.scopes import OF_ONE_SESSION
from sublet.kernel.short_ids import SHORTEST
from sublet.people.model.person import Person
from sublet.web.entry import form_token
from tests.api.test_access_pages import signed_in
from tests.api.test_csrf import addresses, routes
from tests.api.things import (
    ANN,
    BODIES,
    EVE,
    RAE,
    SECRET_NAME,
    Things,
    one_of_everything,
    operations,
)
from tests.contract.services import allow

pytestmark = pytest.mark.anyio
REFUSED = {401, 403, 404}
NO_ID = "4b1f7f86-0000-4000-8000-000000000000"

OPEN = {  # needs no token, and tells nothing of anybody
    "GET /health",
    "GET /metrics",
    "GET /capabilities",
    "GET /availability",
    "GET /.well-known/openid-configuration",
    "GET /.well-known/jwks.json",
    "GET /v1/sign-in/ways",
    "POST /v1/sign-in",
    "POST /v1/sign-in/code",
    "POST /v1/sign-in/second",
    "POST /v1/sign-in/once",
}
ONES_OWN = {  # answers everyone, with what is theirs: nothing of another may be in it
    "GET /v1/sessions",
    "GET /v1/offersets",
    "GET /v1/offersets/pending",
    "DELETE /v1/offersets",
    "GET /v1/events",
    "GET /v1/whoami",
    "GET /v1/platforms",
    "GET /v1/pledges",
    "GET /v1/budgets",
    "GET /v1/tokens",
    "POST /v1/tokens",
    "GET /v1/hooks",
    "POST /v1/hooks",
    "GET /v1/credentials",
    "POST /v1/credentials",
    "POST /v1/credentials/globus",
    "POST /v1/credentials/globus/code",
    "GET /v1/places",
    "GET /v1/uploads",
    "POST /v1/tus",
    "GET /v1/apps",
    "POST /v1/apps",
    "GET /v1/maintainers",
    "GET /v1/facilities",
    "GET /v1/access",
    "GET /v1/access/requests",
    "POST /v1/access/requests",
    "GET /v1/audit",
    "GET /v1/audit/export",
    "GET /v1/usage",
    "GET /v1/bookings",
    "GET /v1/handovers",
    "POST /v1/bookings",
    "GET /v1/archive",
    "GET /v1/archive/export",
    "GET /v1/archive/calibration",
    "DELETE /v1/archive",
    "GET /v1/templates",
    "PUT /v1/templates/{name}",
    "GET /v1/factor",
    "POST /v1/factor",
    "POST /v1/factor/confirm",
    "POST /v1/factor/remove",
    "POST /v1/sign-out",
    "POST /requests",
    "POST /offersets",
    "POST /direct",
    "POST /v1/offersets",
    "POST /v1/offersets/ways",
    "POST /v1/offersets/apps/{app}",
    "POST /v1/sessions",
    "POST /v1/trials",
}
EVERYBODYS = {  # says what there is, and not whose it is
    "GET /v1/accounts",
}
OF_TUS = "/v1/tus/"  # whoever does not say its version is told that first
PERSONAL = {"/v1/annexes", "/v1/jobs", "/v1/dags"}  # of a personal service: 409 on a gateway


@pytest.fixture(scope="module")
async def things(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Things]:
    """Whose they are, and what is done to them, is each test's."""
    async with one_of_everything(tmp_path_factory) as made:
        yield made


def is_refused(answer: httpx2.Response, path: str) -> bool:
    """Whether nothing was done and nothing told; what a gateway has not at all is a conflict."""
    personal = answer.status_code == 409 and any(path.startswith(noun) for noun in PERSONAL)
    silent = answer.status_code == 412 and path.startswith(OF_TUS)
    return answer.status_code in REFUSED or personal or silent


def tells_of_ann(things: Things, answer: httpx2.Response) -> bool:
    """Whether an answer has anything of Ann's in it that was not in the question."""
    words = (ANN, SECRET_NAME, things.session, things.offer, *things.secrets)
    return any(word in answer.text for word in words if word not in answer.request.url.path)


async def test_a_stranger_gets_nowhere(things: Things) -> None:
    before = await things.state()
    let_in = []
    for headers in ({}, {"cookie": f"sublet_web={things.secrets[1]}"}, {"x-forwarded-user": ANN, "x-real-ip": "::1"}):
        nobody = await things.callers.with_headers(headers)
        for method, path, said in operations():
            answer = await things.try_it(nobody, method, path, said)
            if tells_of_ann(things, answer) or (f"{method} {path}" not in OPEN and answer.status_code != 401):
                let_in.append((method, path, answer.status_code))
    assert let_in == []
    assert await things.state() == before


@pytest.mark.parametrize("role", ["person", "reviewer"])
async def test_a_person_who_owns_nothing_gets_at_nothing_of_others(things: Things, role: str) -> None:
    who = EVE if role == "person" else RAE
    before = await things.state()
    let_in = []
    for method, path, said in operations():
        name = f"{method} {path}"
        if role == "reviewer" and path.startswith("/v1/apps"):  # these are a reviewer's part
            continue
        _, secret = await things.service.people.tokens.make_token(Person(who))  # one each: some of these end it
        eve = await things.callers.with_headers({"authorization": f"Bearer {secret}"})
        answer = await things.try_it(eve, method, path, said)
        fine = name in OPEN | ONES_OWN | EVERYBODYS or is_refused(answer, path)
        if not fine or tells_of_ann(things, answer):
            let_in.append((name, answer.status_code, answer.text[:300]))
    assert let_in == []
    after = await things.state()
    assert mine(after) == mine(before)


def mine(state: list[Any]) -> list[Any]:
    """What must stay as it is: all but what others asked for themselves."""
    people, groups, rules, hooks, accounts, requests, *rest = state
    return [people, groups, rules, hooks, accounts, [one for one in requests["items"] if one["person"] == ANN], *rest]


async def test_a_token_to_read_changes_nothing_anywhere(things: Things) -> None:
    read = (await things.ann.post("/v1/tokens", json={"scope": ["read"]})).json()
    client = await things.callers.with_headers({"authorization": f"Bearer {read['token']}"})
    before = await things.state()
    changed = []
    for method, path, said in operations():
        name = f"{method} {path}"
        if method == "GET" or name in OPEN or name == "POST /v1/sign-out":
            continue
        answer = await things.try_it(client, method, path, said)
        if (answer.status_code, answer.json().get("code")) != (403, "out-of-scope"):
            changed.append((name, answer.status_code, answer.text[:200]))
    assert changed == []
    assert await things.state() == before


async def test_a_token_of_another_session_opens_nothing(things: Things) -> None:
    made = (await things.ann.post("/v1/tokens", json={"session": things.offer})).json()
    client = await things.callers.with_headers({"authorization": f"Bearer {made['token']}"})
    for prefix in (things.session, things.session[:8], things.session.upper()):
        for method, path in OF_ONE_SESSION:
            address = path.replace("{id}", prefix).replace("{uuid}", prefix).replace("{path:path}", "f")
            answer = await client.request(method, address, params={"session": prefix})
            assert answer.status_code == 403, (method, address, answer.text)
    opened = []
    for method, path, said in operations():
        about = (method, path.replace("{path}", "{path:path}")) in OF_ONE_SESSION
        if about or f"{method} {path}" in OPEN or path == "/v1/sign-out":
            continue
        answer = await things.try_it(client, method, path, said)
        if answer.status_code != 403:
            opened.append((method, path, answer.status_code))
    assert opened == []


async def test_nobody_accepts_anothers_offer_or_finds_a_session_by_its_beginning(things: Things) -> None:
    await allow(things.service, EVE)
    _, secret = await things.service.people.tokens.make_token(Person(EVE))
    eve = await things.callers.with_headers({"authorization": f"Bearer {secret}"})
    assert (await eve.post(f"/v1/sessions/{things.offer}/accept")).status_code == 403
    moved = {"phase": "ACCEPTED"}
    assert (await eve.post(f"/sessions/{things.offer}", json=moved)).status_code in (400, 403)
    for length in range(1, 36):
        code = "id-too-short" if length < SHORTEST else "not-found"  # of whatever there is
        for id in (things.session, things.offer, NO_ID):
            answer = await eve.get(f"/v1/sessions/{id[:length]}")
            assert (answer.status_code, answer.json()["code"]) == (404, code)
    assert (await things.ann.get(f"/v1/sessions/{things.offer}")).json()["phase"] == "OFFERED"
    assert (await eve.get("/v1/sessions")).json()["items"] == []
    for wild in ("%25", "_" * 8, "*", f"{things.session[:8]}%25", "____%25"):
        assert (await eve.get(f"/v1/sessions/{wild}")).status_code == 404, wild


async def test_nobody_names_what_is_anothers_in_a_wish_of_their_own(things: Things) -> None:
    await allow(things.service, EVE)
    _, secret = await things.service.people.tokens.make_token(Person(EVE))
    eve = await things.callers.with_headers({"authorization": f"Bearer {secret}"})
    run = {"image": "docker.io/library/alpine:3.20", "run": ["true"], "time": "5m"}
    mine = (await eve.post("/v1/offersets", json=run, headers={"idempotency-key": "one"})).json()
    hers = (await things.ann.post("/v1/offersets", json=run, headers={"idempotency-key": "one"})).json()
    assert mine["id"] != hers["id"]
    for method, path, body in (
        ("POST", "/v1/hooks", {"address": "https://8.8.8.8/told", "session": things.session}),
        ("POST", "/v1/tokens", {"session": things.session}),
        ("POST", "/v1/tokens", {"person": ANN}),
        ("POST", "/v1/offersets", {**run, "after": [things.session]}),
        ("POST", "/v1/offersets", {**run, "data": [f"session:{things.session}/out"]}),
        ("POST", "/v1/offersets", {**run, "after": [things.session[:8]]}),
        ("POST", "/v1/rules", {"effect": "allow", "who": EVE, "noun": "system", "name": "*"}),
        ("GET", f"/v1/events?session={things.session}", None),
        ("GET", f"/v1/usage?person={ANN}", None),
        ("GET", f"/v1/audit?person={ANN}", None),
        ("GET", f"/v1/audit/export?person={ANN}", None),
        ("GET", f"/v1/access?person={ANN}", None),
    ):
        answer = await eve.request(method, path, json=body)
        no = answer.status_code == 201 and answer.json().get("result") == "NO"
        assert no or answer.status_code in (400, 403, 404), (method, path, body, answer.text)
        assert not any(word in answer.text for word in (SECRET_NAME, *things.secrets)), answer.text


PAGES_FOR_ALL = {
    "/",
    "/login",
    "/account",
    "/account/factor",
    "/ask",
    "/sessions",
    "/hooks",
    "/uploads",
    "/credentials",
    "/apps",
    "/platforms",
    "/access",
    "/audit",
    "/audit/export",
    "/bookings",
    "/usage",
    "/usage/export",
}
FORMS_FOR_ALL = {
    "/login",
    "/login/code",
    "/login/second",
    "/logout",
    "/account/revoke",
    "/ask",
    "/hooks",
    "/credentials",
    "/credentials/remove",
    "/apps",
    "/access/ask",
}


async def test_no_page_and_no_form_serves_whom_it_does_not_belong_to(things: Things) -> None:
    """With the right proof in each form: what is refused is refused for who asks."""
    before = await things.state()
    let_in = []
    for route in routes(things.callers):
        names = {"id": things.session, "name": things.values.get(f"/v1/{route.path.split('/')[1]}", "x"), "number": "1"}
        if route.path.startswith(("/access/requests/", "/rules/", "/hooks/")):
            names["id"] = things.values["/v1/" + route.path.split("/")[1]]
        if route.path.startswith("/offersets/"):
            names["id"] = things.offerset
        for path in addresses(route, names):
            eve = await signed_in(things.callers, things.service, EVE)
            for method in sorted((route.methods or set()) - {"HEAD"}):
                proof = form_token(things.service, eve.cookies["sublet_web"], path)
                fields = {"token": proof, "id": things.values["/v1/tokens"], "by": "1h"} if method == "POST" else None
                answer = await eve.request(method, path, data=fields)
                fine = route.path in (FORMS_FOR_ALL if method == "POST" else PAGES_FOR_ALL)
                personal = answer.status_code == 409 and route.path.startswith(("/annexes", "/account/"))
                away = route.path.startswith("/sign-in/") and answer.status_code in (303, 400)
                if not (fine or personal or away or answer.status_code in REFUSED) or tells_of_ann(things, answer):
                    let_in.append((method, path, answer.status_code, answer.text[-600:]))
    assert let_in == []
    assert mine(await things.state()) == mine(before)


async def test_the_table_names_addresses_that_there_are() -> None:
    described = {f"{method} {path}" for method, path, _ in operations()}
    assert (OPEN | ONES_OWN | EVERYBODYS | set(BODIES)) - described == set()
