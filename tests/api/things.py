"""A gateway with one of everything, and each of its addresses with a body that it would take."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx2
import pytest

from sublet.app import open_service
from sublet.kernel.master_key import make
from sublet.kernel.settings import Settings
from sublet.people.model.people import Known, Role
from sublet.people.model.person import Person
from sublet.server.app import make_app, openapi_document
from sublet.service import Service
from tests.api.conftest import Callers
from tests.contract.services import allow
from tests.git_server import git_server, program

OP, RAE, ANN, EVE = "op@example.org", "rae@example.org", "ann@example.org", "eve@example.net"
SECRET_NAME = "the-flood-of-ann"
MANIFEST = (
    f'name: flood\nimage: {{location: "docker://ghcr.io/ann/flood", digest: "sha256:{"b" * 64}"}}\nrun: sh f.sh\n'
)
REMOVES_IDENTITY = ("DELETE", "/v1/people/{name}/identities")
document = cache(openapi_document)  # takes a moment, and every worker collects this file
BODIES: dict[str, Any] = {
    "POST /v1/sessions/{id}/extend": {"by": "1h"},
    "POST /v1/apps/{name}/{number}/approve": {"tree": "0" * 64},
    "PUT /v1/people/{name}/role": {"role": "operator"},
    "POST /v1/people/{name}/identities": {"kind": "email", "value": EVE},
    "POST /v1/rules": {"effect": "allow", "who": EVE, "noun": "system", "name": "*"},
    "POST /v1/budgets": {"holder": "*", "limit": "5EUR"},
    "POST /v1/tokens": {},
    "POST /v1/sessions": {"file": "flood", "hpc": "keeling", "app": {}},
    "POST /v1/hooks": {"address": "https://8.8.8.8/told"},
    "POST /v1/credentials": {"place": "s3://bucket", "kind": "s3", "user": "AKIA", "secret": "hush"},
    "POST /v1/uploads/{name}/keep": {"duration": "PT1H"},
    "POST /v1/sessions/{id}/keep": {"duration": "PT1H"},
    "POST /v1/sessions/{id}/send": {"to": "s3://bucket/"},
    "POST /v1/places": {"name": "x", "platform": "keeling", "kind": "reference", "path": "/tmp"},
    "PUT /v1/places/{platform}/{name}/scratch": {"seconds": 60},
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
        own |= {
            "name": self.values.get(noun, "x"),
            "platform": "keeling",
            "app": "flood",
            "member": EVE,
            "site": "x",
            "job": "1.0",
        }
        if path.endswith(("/accept", "/reject")):
            own["id"] = self.offer
        return path.format(**own)

    async def try_it(self, client: httpx2.AsyncClient, method: str, path: str, said: dict[str, Any]) -> httpx2.Response:
        """Call an address with a body that it would take."""
        body = BODIES.get(f"{method} {path}")
        content = said.get("requestBody", {}).get("content", {}).get("application/json")
        if path == "/v1/sessions/cancel":
            body = {"sessions": [self.session, self.offer]}
        if body is None and content is not None:
            body = example(content["schema"])
        query = {"kind": "email", "value": "x@example.org"} if (method, path) == REMOVES_IDENTITY else {}
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


@asynccontextmanager
async def one_of_everything(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Things]:
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
            globus_auth="http://127.0.0.1:9",  # nobody is there: no test asks Globus itself
            platforms={"keeling": {"kind": "memory", "takes": "10m", "cores": 16}, "spare": {"kind": "memory"}},
        )
        async with open_service(settings, loop=False) as service, AsyncExitStack() as stack:
            now = service.now()
            for name, role in ((OP, Role.OPERATOR), (RAE, Role.REVIEWER), (ANN, Role.PERSON), (EVE, Role.PERSON)):
                await service.store.write(lambda tx, name=name, role=role: tx.people.add(Known(name, role, now)))
            await allow(service, ANN, name="keeling")
            await service.apps.proposing.propose(Person(ANN), f"{git.url}/ann/flood", name="flood")
            yield await furnished(service, Callers(make_app(service, "owner"), service, stack))


async def furnished(service: Service, callers: Callers) -> Things:
    """Ann asks, runs, and has one of each."""
    _, boss = await service.people.tokens.make_token(Person(OP))
    _, secret = await service.people.tokens.make_token(Person(ANN))
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
    budget = (await operator.post("/v1/budgets", json={"holder": ANN, "limit": "500EUR"})).json()
    values = {
        "/v1/hooks": hook["id"],
        "/v1/tokens": token["id"],
        "/v1/access": asked.json()["request"]["id"],
        "/v1/rules": rules[0]["id"],
        "/v1/budgets": budget["id"],
        "/v1/groups": "lab",
        "/v1/people": ANN,
        "/v1/apps": "flood",
        "/v1/platforms": "keeling",
        "/v1/places": "keeling",
        "/v1/systems": "keeling",
        "/v1/templates": SECRET_NAME,
    }
    names = (accepted["id"], second["offers"][0]["id"], second["id"])
    return Things(service, callers, ann, *names, values, (boss, secret, accepted["token"], token["token"]))
