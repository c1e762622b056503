"""Annexes in both clients: asked for in words, waited for, changed and ended."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.annexes.views.annexes import (
    AnnexHistory,
    AnnexList,
    AnnexView,
    CostView,
    DetailsView,
    LeaseView,
    NodeStateView,
    PlanView,
)
from sublet.client import AsyncClient, Client
from sublet.kernel.errors import LeaseRefused, NotUpYet
from tests.canned import NOW, Canned, Said

DETAILS = DetailsView(system="expanse", nodes=1)
LEASE = LeaseView(id="l", name="example#1", number=1, state="queued", details=DETAILS, created=NOW)
UP = replace(LEASE, state="up", nodes=(NodeStateView(number=0, node="c1", state="up"),))
ENDED = replace(LEASE, state="ended", why="its nodes could not reach this service")
ANNEX = AnnexView(id="a", name="example", person="ada", created=NOW, leases=(LEASE,))
PLAN = PlanView(
    annex="example", lease="example#1", refused=False, details=DETAILS, rows=(), cost=CostView(node_hours=4)
)


def canned(**more: Any) -> Canned:
    return Canned(
        {
            "POST /v1/annexes": Said(LEASE, 201),
            "POST /v1/annexes/example/plan": Said(PLAN),
            "POST /v1/annexes/example/leases": Said(LEASE, 201),
            "GET /v1/annexes": Said(AnnexList(items=(ANNEX,))),
            "GET /v1/annexes/example": [Said(ANNEX), Said(ANNEX), Said(replace(ANNEX, leases=(UP,)))],
            "GET /v1/annexes/example/history": Said(AnnexHistory(annex=replace(ANNEX, leases=(ENDED,)), events=())),
            "POST /v1/annexes/example/shutdown": Said(ANNEX),
            "POST /v1/annexes/example%231/cancel": Said(ANNEX),
            "POST /v1/annexes/example/rename": Said(replace(ANNEX, name="better")),
            "POST /v1/annexes/example/open": Said(ANNEX),
            "POST /v1/annexes/example/close": Said(ANNEX),
            "POST /v1/annexes/example/share": Said(replace(ANNEX, guests=("bob",))),
            "POST /v1/annexes/example/unshare": Said(ANNEX),
            **more,
        }
    )


def test_nodes_are_asked_for_in_words_and_waited_for(tmp_path: Path) -> None:
    service = canned()
    with service.serving(tmp_path) as url:
        client = Client(url)
        assert client.plan_annex("example", nodes=2).cost.node_hours == 4
        annex = client.create_annex("example", system="expanse", nodes=2, memory="8GiB", lifetime="4h", like="other")
        assert Client(url).create_annex("example", key="mine").name == "example"
        assert [heard.headers.get("Idempotency-Key") for heard in service.heard if heard.target == "/v1/annexes"] == [
            None,
            "mine",
        ]
        assert (annex.name, annex.nodes, repr(annex)) == ("example", 0, "<annex example: example#1 queued>")
        assert annex.wait(timeout=30).nodes == 1
        assert [one.name for one in client.annexes()] == ["example"]
    asked = json.loads(next(heard.body for heard in service.heard if heard.target == "/v1/annexes"))
    assert (asked["like"], asked["details"]["memory"], asked["details"]["lifetime"]) == ("other", 8 << 30, "PT4H")


def test_an_annex_is_changed_and_ended(tmp_path: Path) -> None:
    service = canned()
    with service.serving(tmp_path) as url:
        annex = Client(url).annex("example")
        assert annex.add(nodes=4, key="more").name == "example#1"
        assert service.heard[-1].headers["Idempotency-Key"] == "more"
        annex.cancel(1)
        annex.shutdown()
        annex.open().close()
        assert annex.share("bob").view.guests == ("bob",)
        assert annex.unshare("bob").view.guests == ()
        assert annex.history().annex.leases == (ENDED,)
        assert annex.rename("better").name == "better"
    assert "POST /v1/annexes/example%231/cancel" in [f"{heard.method} {heard.target}" for heard in service.heard]


def test_waiting_ends_when_there_is_nothing_to_wait_for(tmp_path: Path) -> None:
    service = canned(**{"GET /v1/annexes/example": Said(replace(ANNEX, leases=()))})
    with service.serving(tmp_path) as url, pytest.raises(LeaseRefused, match="could not reach this service"):
        Client(url).annex("example").wait()


def test_waiting_ends_when_it_has_lasted_long_enough(tmp_path: Path) -> None:
    with canned(**{"GET /v1/annexes/example": Said(ANNEX)}).serving(tmp_path) as url, pytest.raises(NotUpYet):
        Client(url).annex("example").wait(timeout=0)


@pytest.mark.anyio
async def test_the_client_that_awaits_does_the_same(tmp_path: Path) -> None:
    with canned().serving(tmp_path) as url:
        async with AsyncClient(url) as client:
            assert (await client.plan_annex("example")).lease == "example#1"
            annex = await client.create_annex("example", nodes=1, lifetime=timedelta(hours=4))
            assert (await annex.wait(timeout=30)).nodes == 1
            assert (await annex.add(nodes=4)).name == "example#1"
            await annex.cancel(1)
            await annex.shutdown()
            await (await annex.open()).close()
            assert (await annex.share("bob")).view.guests == ("bob",)
            await annex.unshare("bob")
            assert (await annex.history()).annex.name == "example"
            assert [one.name for one in await client.annexes()] == ["example"]
            assert (await annex.rename("better")).name == "better"
