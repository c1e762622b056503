"""Every address that the service describes, walked by those whom its things do not belong to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx2
import pytest

from sublet.api.app import make_app, openapi_document
from sublet.api.scopes import OF_ONE_SESSION
from sublet.core.people import Known, Role
from sublet.master_key import make
from sublet.service.desk import Person
from sublet.service.service import Service
from sublet.settings import Settings
from sublet.web.entry import form_token
from tests.api.conftest import Callers
from tests.api.test_access_pages import signed_in
from tests.api.test_csrf import addresses, routes
from tests.contract.services import allow
from tests.git_server import git_server, program

pytestmark = pytest.mark.anyio
OP, RAE, ANN, EVE = "op@example.org", "rae@example.org", "ann@example.org", "eve@example.net"
SECRET_NAME = "the-flood-of-ann"
MANIFEST = (
    f'name: flood\nimage: {{location: "docker://ghcr.io/ann/flood", digest: "sha256:{"b" * 64}"}}\nrun: sh f.sh\n'
)
document = cache(openapi_document)  # takes a moment, and every worker collects this file
REFUSED = {401, 403, 404}

OPEN = {  # needs no token, and tells nothing of anybody
    "GET /health",
    "GET /metrics",
    "GET /v1/sign-in/ways",
    "POST /v1/sign-in",
    "POST /v1/sign-in/code",
    "POST /v1/sign-in/second",
    "POST /v1/sign-in/once",
}
ONES_OWN = {  # answers everyone, with what is theirs: nothing of another may be in it
    "GET /v1/sessions",
    "GET /v1/events",
    "GET /v1/whoami",
    "GET /v1/platforms",
    "GET /v1/pledges",
    "GET /v1/tokens",
    "POST /v1/tokens",
    "GET /v1/hooks",
    "POST /v1/hooks",
    "GET /v1/apps",
    "POST /v1/apps",
    "GET /v1/maintainers",
    "GET /v1/access",
    "GET /v1/access/requests",
    "POST /v1/access/requests",
    "GET /v1/audit",
    "GET /v1/audit/export",
    "GET /v1/usage",
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
    "POST /v1/offersets/apps/{app}",
    "POST /v1/sessions",
    "POST /v1/trials",
}
EVERYBODYS = {  # says what there is, and not whose it is
    "GET /v1/accounts",
}
PERSONAL = {"/v1/annexes", "/v1/jobs", "/v1/dags"}  # of a personal service: 409 on a gateway
BODIES: dict[str, Any] = {
    "POST /v1/sessions/{id}/extend": {"by": "1h"},
    "POST /v1/apps/{name}/{number}/approve": {"tree": "0" * 64},
    "PUT /v1/people/{name}/role": {"role": "operator"},
    "POST /v1/people/{name}/identities": {"kind": "email", "value": EVE},
    "POST /v1/rules": {"effect": "allow", "who": EVE, "noun": "system", "name": "*"},
    "POST /v1/tokens": {},
    "POST /v1/sessions": {"file": "flood", "hpc": "keeling", "app": {}},
    "POST /v1/hooks": {"address": "https://8.8.8.8/told"},
    "POST /v1/access/requests": {"name": "keeling", "why": "please"},
}


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each method and address of the description, and what it says of it."""
    for path, methods in document()["paths"].items():
        for method, said in methods.items():
            if method != "parameters":
                yield method.upper(), path, said


def example(schema: dict[str, Any]) -> Any:
    """The least that a schema wants."""
    if reference := schema.get("$ref"):
        return example(document()["components"]["schemas"][reference.rpartition("/")[2]])
    for among in ("anyOf", "oneOf", "allOf"):
        if among in schema:
            return example(schema[among][0])
    if "enum" in schema or "const" in schema:
        return schema.get("const", schema.get("enum", [""])[0])
    if schema.get("type") == "object":
        wanted = schema.get("properties", {})
        return {name: example(wanted[name]) for name in schema.get("required", ()) if name in wanted}
    return {"string": "x", "integer": 1, "number": 1, "boolean": False, "array": []}.get(schema.get("type", ""), {})


@dataclass
class Things:
    """What is Ann's, and what belongs to the gateway."""

    service: Service
    callers: Callers
    ann: httpx2.AsyncClient
    session: str
    offer: str
    offerset: str
    values: dict[str, str]
    secrets: tuple[str, ...]

    def address(self, path: str) -> str:
        """An address with the names of things that there are."""
        noun = "/".join(path.split("/")[:3])
        if path.startswith(("/offersets/", "/v1/offersets/{")):
            return path.format(uuid=self.offerset, id=self.offerset)
        own = {"id": self.values.get(noun, self.session), "uuid": self.session, "number": "1", "path": "f"}
        own |= {"name": self.values.get(noun, "x"), "app": "flood", "member": EVE, "site": "x", "job": "1.0"}
        if path.endswith(("/accept", "/reject")):
            own["id"] = self.offer
        return path.format(**own)

    async def try_it(self, client: httpx2.AsyncClient, method: str, path: str, said: dict[str, Any]) -> httpx2.Response:
        """Call an address with a body that it would take."""
        body = BODIES.get(f"{method} {path}")
        content = said.get("requestBody", {}).get("content", {}).get("application/json")
        if body is None and content is not None:
            body = example(content["schema"])
        query = {"kind": "email", "value": "x@example.org"} if path.endswith("/identities") else {}
        return await client.request(method, self.address(path), json=body, params=query)

    async def state(self) -> list[Any]:
        """All that there is, as an operator sees it."""
        operator = await self.callers.with_headers({"authorization": f"Bearer {self.secrets[0]}"})
        paths = ("people", "groups", "rules", "hooks", "accounts", "access/requests", "apps", "apps/flood/1")
        seen = [(await operator.get(f"/v1/{path}")).json() for path in paths]
        own = [(await self.ann.get(f"/v1/{path}")).json() for path in ("hooks", "tokens", "templates")]
        for one in (*own[0]["items"], *own[1]["items"]):
            one["used"] = one["told"] = None
        own += [(await self.ann.get(f"/v1/sessions/{id}")).json()["phase"] for id in (self.session, self.offer)]
        return seen + own


@pytest.fixture(scope="module")
async def things(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Things]:
    """A gateway with one of everything."""
    with git_server(tmp_path_factory.mktemp("git")) as git:
        git.repository("ann/flood").commit({"sublet.yaml": MANIFEST, "f.sh": program("echo f\n")}, "Begin")
        master = tmp_path_factory.mktemp("key") / "master"
        make(str(master))
        settings = Settings.load(
            tmp_path_factory.mktemp("home"),
            mode="gateway",
            master_key=str(master),
            apps={"private": [f"{git.url}/*"]},
            platforms={"keeling": {"kind": "memory", "takes": "10m", "cores": 16}, "spare": {"kind": "memory"}},
        )
        async with Service.open(settings, loop=False) as service, AsyncExitStack() as stack:
            now = service.now()
            for name, role in ((OP, Role.OPERATOR), (RAE, Role.REVIEWER), (ANN, Role.PERSON), (EVE, Role.PERSON)):
                await service.store.write(lambda tx, name=name, role=role: tx.people.add(Known(name, role, now)))
            await allow(service, ANN, name="keeling")
            await service.propose(Person(ANN), f"{git.url}/ann/flood", name="flood")
            yield await furnished(service, Callers(make_app(service, "owner"), service, stack))


async def furnished(service: Service, callers: Callers) -> Things:
    """Ann asks, runs, and has one of each."""
    _, boss = await service.make_token(Person(OP))
    _, secret = await service.make_token(Person(ANN))
    ann = await callers.with_headers({"authorization": f"Bearer {secret}"})
    operator = await callers.with_headers({"authorization": f"Bearer {boss}"})
    short = {"image": "docker.io/library/alpine:3.20", "run": ["true"], "time": "5m", "name": SECRET_NAME}
    first = (await ann.post("/v1/offersets", json=short)).json()
    accepted = (await ann.post(f"/v1/sessions/{first['offers'][0]['id']}/accept")).json()
    second = (await ann.post("/v1/offersets", json=short)).json()
    hook = (await ann.post("/v1/hooks", json={"address": f"https://8.8.8.8/{SECRET_NAME}"})).json()
    token = (await ann.post("/v1/tokens", json={"note": SECRET_NAME})).json()
    asked = await ann.post("/v1/access/requests", json={"name": "spare", "why": SECRET_NAME})
    await ann.put(f"/v1/templates/{SECRET_NAME}", json={})
    group = await operator.post("/v1/groups", json={"name": "lab"})
    assert group.status_code == 201, group.text
    rules = (await operator.get("/v1/rules")).json()["items"]
    values = {
        "/v1/hooks": hook["id"],
        "/v1/tokens": token["id"],
        "/v1/access": asked.json()["request"]["id"],
        "/v1/rules": rules[0]["id"],
        "/v1/groups": "lab",
        "/v1/people": ANN,
        "/v1/apps": "flood",
        "/v1/platforms": "keeling",
        "/v1/systems": "keeling",
        "/v1/templates": SECRET_NAME,
    }
    names = (accepted["id"], second["offers"][0]["id"], second["id"])
    return Things(service, callers, ann, *names, values, (boss, secret, accepted["token"], token["token"]))


def is_refused(answer: httpx2.Response, path: str) -> bool:
    """Whether nothing was done and nothing told; what a gateway has not at all is a conflict."""
    personal = answer.status_code == 409 and any(path.startswith(noun) for noun in PERSONAL)
    return answer.status_code in REFUSED or personal


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
        _, secret = await things.service.make_token(Person(who))  # one each: some of these end it
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
    _, secret = await things.service.make_token(Person(EVE))
    eve = await things.callers.with_headers({"authorization": f"Bearer {secret}"})
    assert (await eve.post(f"/v1/sessions/{things.offer}/accept")).status_code == 403
    moved = {"phase": "ACCEPTED"}
    assert (await eve.post(f"/sessions/{things.offer}", json=moved)).status_code in (400, 403)
    for length in range(1, 36):
        for id in (things.session, things.offer):
            answer = await eve.get(f"/v1/sessions/{id[:length]}")
            assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
    assert (await things.ann.get(f"/v1/sessions/{things.offer}")).json()["phase"] == "OFFERED"
    assert (await eve.get("/v1/sessions")).json()["items"] == []
    for wild in ("%25", "_" * 8, "*", f"{things.session[:8]}%25", "____%25"):
        assert (await eve.get(f"/v1/sessions/{wild}")).status_code == 404, wild


async def test_nobody_names_what_is_anothers_in_a_wish_of_their_own(things: Things) -> None:
    await allow(things.service, EVE)
    _, secret = await things.service.make_token(Person(EVE))
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
    "/apps",
    "/access",
    "/audit",
    "/audit/export",
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
