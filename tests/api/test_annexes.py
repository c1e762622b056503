"""Annexes and templates over HTTP: planned, made, looked at, changed, ended; each person's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from sublet.annexes.views.annexes import AnnexHistory, AnnexView, LeaseView, PlanView, TemplateView
from sublet.kernel.views import read
from sublet.service import Service
from tests.contract.leases import leasing

pytestmark = pytest.mark.anyio
DETAILS = {"nodes": 2, "cores": 4, "lifetime": "PT2H"}


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """A service with one cluster, whose pilots are played."""
    async with leasing(tmp_path_factory.mktemp("home")) as opened:
        yield opened


async def made(person: httpx2.AsyncClient, name: str = "example", **details: Any) -> LeaseView:
    answer = await person.post("/v1/annexes", json={"name": name, "details": {**DETAILS, **details}})
    assert answer.status_code == 201, answer.text
    return read(LeaseView, answer.json())


async def test_a_plan_shows_every_line_and_sends_nothing(ann: httpx2.AsyncClient) -> None:
    answer = await ann.post("/v1/annexes/example/plan", json={"details": DETAILS})
    plan = read(PlanView, answer.json())
    assert (plan.annex, plan.lease, plan.refused) == ("example", "example#1", False)
    assert {row.field: row.flag for row in plan.rows}["lifetime"] == "--lifetime"
    assert (plan.cost.node_hours, plan.cost.core_hours) == (4, 16)
    assert plan.details.system == "cluster"
    assert (await ann.get("/v1/annexes")).json() == {"items": []}


async def test_an_annex_is_made_looked_at_and_ended(ann: httpx2.AsyncClient) -> None:
    lease = await made(ann)
    assert (lease.name, lease.details.nodes) == ("example#1", 2)
    assert lease.session
    [annex] = (await ann.get("/v1/annexes")).json()["items"]
    assert [one["name"] for one in annex["leases"]] == ["example#1"]
    again = await ann.post("/v1/annexes", json={"name": "example", "details": DETAILS})
    assert (again.status_code, again.json()["code"]) == (409, "annex-in-use")
    more = await ann.post("/v1/annexes/example/leases", json={"details": {"nodes": 1}})
    assert read(LeaseView, more.json()).details.cores == 4
    one = read(AnnexView, (await ann.post("/v1/annexes/example%232/shutdown")).json())
    assert [(ended.name, ended.state) for ended in one.leases] == [("example#2", "ended")]
    left = read(AnnexView, (await ann.get("/v1/annexes/example")).json())
    assert [lease.name for lease in left.leases] == ["example#1"]
    await ann.post("/v1/annexes/example/shutdown")
    history = read(AnnexHistory, (await ann.get("/v1/annexes/example/history")).json())
    assert [lease.state for lease in history.annex.leases] == ["ended", "ended"]
    kinds = [event.kind for event in history.events]
    assert (kinds[0], kinds.count("lease.ended")) == ("lease.asked", 2)


async def test_an_annex_is_changed(ann: httpx2.AsyncClient) -> None:
    await made(ann)
    for verb, said, found in (
        ("open", None, {"open": True}),
        ("close", None, {"open": False}),
        ("share", {"guest": "bob"}, {"guests": ["bob"]}),
        ("unshare", {"guest": "bob"}, {"guests": []}),
        ("rename", {"name": "better"}, {"name": "better"}),
    ):
        view = (await ann.post(f"/v1/annexes/example/{verb}", json=said)).json()
        assert view.items() >= found.items()
    assert (await ann.get("/v1/annexes/example")).status_code == 404


async def test_what_makes_no_sense_is_refused_with_the_nearest_that_does(ann: httpx2.AsyncClient) -> None:
    refused = (await ann.post("/v1/annexes", json={"name": "x", "details": {"nodes": 3}})).json()
    assert (refused["code"], refused["hint"]) == ("lease-refused", "Possible: --cores N.")
    for details in ({"nodes": 0}, {"lifetime": "-PT1H"}, {"carry": "pigeon"}):
        assert (await ann.post("/v1/annexes", json={"name": "x", "details": details})).status_code == 400
    assert (await ann.post("/v1/annexes", json={"name": "a b"})).status_code == 400


async def test_nobody_sees_anothers(ann: httpx2.AsyncClient, bob: httpx2.AsyncClient) -> None:
    await made(ann)
    await ann.put("/v1/templates/big", json={"nodes": 9})
    for path in ("/v1/annexes/example", "/v1/annexes/example/history", "/v1/templates/big"):
        assert (await bob.get(path)).status_code == 404
    assert (await bob.post("/v1/annexes/example/shutdown")).status_code == 404
    assert (await bob.get("/v1/annexes")).json() == (await bob.get("/v1/templates")).json() == {"items": []}


async def test_a_template_is_kept_used_and_forgotten(ann: httpx2.AsyncClient) -> None:
    saved = read(TemplateView, (await ann.put("/v1/templates/big", json={"nodes": 3, "cores": 2})).json())
    assert (saved.name, saved.details.nodes) == ("big", 3)
    plan = read(PlanView, (await ann.post("/v1/annexes/example/plan", json={"template": "big"})).json())
    assert {row.field: row.source for row in plan.rows}["nodes"] == "template big"
    assert (await ann.delete("/v1/templates/big")).status_code == 204
    assert (await ann.get("/v1/templates/big")).status_code == 404
