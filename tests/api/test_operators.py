"""Operators and the sessions of others: listed, explained, cancelled, drained; what those print is their owners'."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from sublet.app import open_service
from sublet.booking.model.phases import Phase
from sublet.kernel.settings import Settings
from sublet.people.model.people import Known, Role
from sublet.people.model.person import Person
from sublet.service import Service
from sublet.web.entry import form_token
from tests.api.conftest import Callers
from tests.api.test_access_pages import sent, signed_in
from tests.contract.services import allow, change_settings, in_phase, reach
from tests.smtp import Mailbox, text_of

pytestmark = pytest.mark.anyio
OP, ANN, BEN = "op@example.org", "ann@example.org", "ben@example.org"
RUN = {"image": "docker://busybox", "time": "1h", "cores": 1}


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory, mailbox: Mailbox) -> AsyncIterator[Service]:
    platforms = {
        "keeling": {"kind": "memory", "nodes": 20, "cores": 16, "takes": "1h"},
        "roger": {"kind": "memory", "nodes": 20, "cores": 16, "takes": "1h"},
    }
    home = tmp_path_factory.mktemp("home")
    mail = mailbox.settings
    async with open_service(Settings.load(home, mode="gateway", platforms=platforms, mail=mail)) as opened:
        now = opened.now()
        for name, role in ((OP, Role.OPERATOR), (ANN, Role.PERSON), (BEN, Role.PERSON)):
            await opened.store.write(lambda tx, name=name, role=role: tx.people.add(Known(name, role, now)))
        await allow(opened, "*@example.org")
        yield opened


async def test_an_operator_without_the_second_factor_that_their_role_needs_is_told_so(
    callers: Callers, service: Service
) -> None:
    before = service.settings.signing
    change_settings(service, signing=before.model_copy(update={"second_factor": ("operator",)}))
    try:
        op, ann = await caller(callers, service, OP), await caller(callers, service, ANN)
        refused = await op.get("/v1/people")
        assert (refused.status_code, refused.json()["code"]) == (403, "operators-only")
        assert "operator, counts once you have a second factor: `sublet person totp on`" in refused.json()["hint"]
        who = (await op.get("/v1/whoami")).json()
        assert (who["role"], who["pending_role"]) == ("person", "operator")
        assert "second factor" not in (await ann.get("/v1/people")).json()["hint"]
        page = await signed_in(callers, service, OP)
        assert "counts once you have a second factor" in (await page.get("/web/people")).text
        assert "Your role, operator, counts once you have one." in (await page.get("/web/account")).text
    finally:
        change_settings(service, signing=before)


async def caller(callers: Callers, service: Service, name: str, **token: Any) -> httpx2.AsyncClient:
    _, secret = await service.people.tokens.make_token(Person(name), **token)
    return await callers.with_headers({"authorization": f"Bearer {secret}"})


async def begin(client: httpx2.AsyncClient, service: Service, **wish: Any) -> str:
    """A session that runs."""
    offers = (await client.post("/v1/offersets", json={**RUN, **wish})).json()
    accepted = (await client.post(f"/v1/sessions/{offers['offers'][0]['id']}/accept")).json()
    await reach(service, accepted["id"], in_phase(Phase.RUNNING), Person(accepted["person"]))
    return str(accepted["id"])


def ids(answer: httpx2.Response) -> set[str]:
    assert answer.status_code == 200, answer.text
    return {one["id"] for one in answer.json()["items"]}


async def audited(service: Service, action: str) -> list[tuple[str, str, dict[str, Any]]]:
    found = await service.store.read(lambda tx: tx.audit.list(action=action))
    return [(one.person, one.name, dict(one.detail)) for one in found]


async def test_an_operator_lists_and_filters_everyones_sessions_a_page_at_a_time(
    callers: Callers, service: Service
) -> None:
    op, ann, ben = [await caller(callers, service, name) for name in (OP, ANN, BEN)]
    hers = await begin(ann, service, platform="keeling", name="flood of ann")
    his = await begin(ben, service, platform="roger")
    running = {"phase": "RUNNING"}
    assert ids(await op.get("/v1/sessions", params=running)) == set(), "without a person, one's own"
    for everyone in ("*", "everyone"):
        assert {hers, his} <= ids(await op.get("/v1/sessions", params={**running, "person": everyone}))
    assert ids(await op.get("/v1/sessions", params={**running, "person": "ANN@example.org"})) == {hers}
    assert ids(await op.get("/v1/sessions", params={**running, "person": "*", "platform": "roger"})) == {his}
    assert ids(await op.get("/v1/sessions", params={"person": "*", "name": "*FLOOD*", "active": True})) == {hers}
    later = (service.now() + timedelta(minutes=1)).isoformat()
    assert ids(await op.get("/v1/sessions", params={"person": "*", "since": later})) == set()
    assert {hers, his} <= ids(await op.get("/v1/sessions", params={"person": "*", "until": later}))
    first = (await op.get("/v1/sessions", params={**running, "person": "*", "limit": 1})).json()
    rest = await op.get("/v1/sessions", params={**running, "person": "*", "after": first["next"]})
    assert {first["items"][0]["id"]} | ids(rest) >= {hers, his}
    assert first["items"][0]["id"] not in ids(rest)
    for name, value in (("person", "anne@example.org"), ("app", "suma@2"), ("annex", "cirus")):
        unknown = await op.get("/v1/sessions", params={"person": "*", name: value})
        assert (unknown.status_code, unknown.json()["code"]) == (404, "not-found"), "a typing error is no empty list"
    for wrong in ({"since": "yesterday"}, {"since": "2026-11-01"}, {"phase": "GONE"}):
        assert (await op.get("/v1/sessions", params=wrong)).status_code == 400


async def test_who_is_no_operator_is_told_so_and_not_shown_their_own_instead(
    callers: Callers, service: Service
) -> None:
    ann, ben = await caller(callers, service, ANN), await caller(callers, service, BEN)
    hers = await begin(ann, service)
    for who in ("*", "everyone", ANN):
        refused = await ben.get("/v1/sessions", params={"person": who})
        assert (refused.status_code, refused.json()["code"]) == (403, "operators-only"), who
        assert hers not in refused.text
    assert hers in ids(await ann.get("/v1/sessions", params={"person": ANN})), "oneself may be named"
    for method, path in (("POST", f"/v1/sessions/{hers}/cancel"), ("GET", f"/v1/sessions/{hers}/explain")):
        assert (await ben.request(method, path)).status_code == 403
    both = await ben.post("/v1/sessions/cancel", json={"sessions": [hers]})
    assert both.status_code == 403
    assert (await ann.get(f"/v1/sessions/{hers}")).json()["phase"] == "RUNNING"


LISTS = ("sessions", "platforms", "people", "rules", "groups", "tokens", "hooks", "apps", "audit", "usage", "access")


@pytest.mark.parametrize("noun", [*LISTS, "events", "accounts", "access/requests", "templates", "pledges", "calendar"])
async def test_a_parameter_that_nobody_knows_is_refused_and_not_ignored(
    callers: Callers, service: Service, noun: str
) -> None:
    op = await caller(callers, service, OP)
    refused = await op.get(f"/v1/{noun}", params={"persn": ANN})
    assert (refused.status_code, refused.json()["code"]) == (400, "bad-request")
    assert "`persn`" in refused.json()["detail"]
    assert refused.json()["hint"].startswith(("Did you mean `person`?", "It takes"))
    stranger = await callers.with_headers()
    assert (await stranger.get(f"/v1/{noun}", params={"persn": ANN})).status_code == 401


async def test_a_wish_with_a_parameter_that_nobody_knows_is_not_carried_out(callers: Callers, service: Service) -> None:
    ann = await caller(callers, service, ANN)
    hers = await begin(ann, service)
    assert (await ann.post(f"/v1/sessions/{hers}/cancel", params={"dry_run": "true"})).status_code == 400
    assert (await ann.get(f"/v1/sessions/{hers}")).json()["phase"] == "RUNNING"


async def test_an_operator_explains_and_cancels_with_a_reason_that_the_owner_learns(
    callers: Callers, service: Service, mailbox: Mailbox
) -> None:
    op, ann = await caller(callers, service, OP), await caller(callers, service, ANN)
    hers = await begin(ann, service)
    before = len(mailbox.to(ANN))
    assert "Running since" in " ".join((await op.get(f"/v1/sessions/{hers}/explain")).json()["sentences"])
    kinds = [one["kind"] for one in (await op.get("/v1/events", params={"session": hers})).json()["items"]]
    assert "session.accepted" in kinds
    done = await op.post(f"/v1/sessions/{hers}/cancel", json={"reason": "the disks  are full"})
    assert (done.status_code, done.json()["phase"]) == (200, "CANCELLED")
    end = (await ann.get(f"/v1/sessions/{hers}")).json()["end"]
    assert (end["by"], end["detail"]) == (OP, "the disks are full")
    sentences = (await ann.get(f"/v1/sessions/{hers}/explain")).json()["sentences"]
    assert f"It was cancelled by {OP}: the disks are full." in sentences
    letter = text_of(await mailbox.comes_for(ANN, before + 1))
    assert "the disks are full" in letter
    assert hers[:8] in letter
    assert (OP, hers, {"person": ANN, "reason": "the disks are full"}) in await audited(service, "session.cancel")
    await op.post(f"/v1/sessions/{hers}/cancel", json={"reason": "again"})
    assert len(mailbox.to(ANN)) == before + 1, "what was cancelled already is not told again"
    long = await op.post(f"/v1/sessions/{hers}/cancel", json={"reason": "x" * 501})
    assert long.status_code == 400


async def test_several_are_cancelled_at_once_or_none(callers: Callers, service: Service, mailbox: Mailbox) -> None:
    op, ann, ben = [await caller(callers, service, name) for name in (OP, ANN, BEN)]
    theirs = [await begin(ann, service), await begin(ann, service), await begin(ben, service)]
    before = len(mailbox.to(BEN))
    wish = {"sessions": theirs, "reason": "maintenance"}
    dry = (await op.post("/v1/sessions/cancel", json={**wish, "dry_run": True})).json()
    assert [one["id"] for one in dry["cancelled"]] == theirs
    mixed = await ann.post("/v1/sessions/cancel", json=wish)
    assert mixed.status_code == 403
    missing = await op.post("/v1/sessions/cancel", json={"sessions": [theirs[0], "0" * 36]})
    assert missing.status_code == 404
    assert {(await ann.get(f"/v1/sessions/{id}")).json()["phase"] for id in theirs[:2]} == {"RUNNING"}
    await ann.post(f"/v1/sessions/{theirs[0]}/cancel")
    done = (await op.post("/v1/sessions/cancel", json=wish)).json()
    assert [one["id"] for one in done["cancelled"]] == theirs[1:]
    assert [one["id"] for one in done["over"]] == theirs[:1]
    ended = await reach(service, theirs[2], in_phase(Phase.CANCELLED), Person(BEN))
    assert ended.end is not None
    assert ended.end.detail == "maintenance"
    assert "maintenance" in text_of(await mailbox.comes_for(BEN, before + 1))


async def test_what_others_sessions_print_leave_and_run_is_not_an_operators(callers: Callers, service: Service) -> None:
    op, ann = await caller(callers, service, OP), await caller(callers, service, ANN)
    hers = await begin(ann, service)
    for path in (
        "logs",
        "logs?tail=1000",
        "logs?follow=true",
        "logs?follow=true&tail=9",
        "results",
        "results/f",
        "archive",
    ):
        refused = await op.get(f"/v1/sessions/{hers}/{path}")
        assert (refused.status_code, refused.json()["code"]) == (403, "contents-private"), path
    assert (await op.post(f"/v1/sessions/{hers}/again", json={})).status_code == 403
    assert (await op.post(f"/v1/sessions/{hers}/fetched")).status_code == 403
    view = (await op.get(f"/v1/sessions/{hers}")).json()
    for path in (f"/sessions/{hers}", f"/offersets/{view['offerset']}", f"/v1/offersets/{view['offerset']}"):
        assert (await op.get(path)).status_code == 403, path
        assert (await ann.get(path)).status_code == 200, path
    refusals = await audited(service, "session.read-refused")
    assert {detail["what"] for who, id, detail in refusals if id == hers} == {"output", "results", "request"}
    closed = service.settings.operators_read
    change_settings(service, operators_read=True)
    try:
        assert (await op.get(f"/v1/sessions/{hers}/logs")).status_code == 200
        assert (await op.get(f"/v1/sessions/{hers}/logs")).status_code == 200
    finally:
        change_settings(service, operators_read=closed)
    looks = [one for one in await audited(service, "session.read") if one[1] == hers]
    assert (OP, hers, {"person": ANN, "what": "output"}) in looks


async def test_a_token_is_for_others_sessions_only_as_far_as_its_scope(callers: Callers, service: Service) -> None:
    ann = await caller(callers, service, ANN)
    reader = await caller(callers, service, OP, scope=["read"])
    runner = await caller(callers, service, OP, scope=["run"])
    manager = await caller(callers, service, OP, scope=["manage"])
    hers = await begin(ann, service)
    assert hers in ids(await reader.get("/v1/sessions", params={"person": "*"}))
    for client in (reader, runner):
        for path in (f"{hers}/cancel", f"{hers}/pause"):
            refused = await client.post(f"/v1/sessions/{path}")
            assert (refused.status_code, refused.json()["code"]) == (403, "out-of-scope"), path
        several = await client.post("/v1/sessions/cancel", json={"sessions": [hers]})
        assert several.json()["code"] == "out-of-scope"
        assert (await client.post("/v1/platforms/keeling/drain", json={})).json()["code"] == "out-of-scope"
    assert (await manager.post(f"/v1/sessions/{hers}/cancel")).status_code == 200


async def test_a_drained_platform_makes_no_offers_takes_none_and_is_shown_so(
    callers: Callers, service: Service
) -> None:
    op, ann = await caller(callers, service, OP), await caller(callers, service, ANN)
    running = await begin(ann, service, platform="roger")
    offered = (await ann.post("/v1/offersets", json={**RUN, "platform": "roger"})).json()["offers"][0]["id"]
    assert (await ann.post("/v1/platforms/roger/drain", json={})).status_code == 403
    until = (service.now() + timedelta(hours=2)).isoformat()
    drained = await op.post("/v1/platforms/roger/drain", json={"until": until, "reason": "new disks"})
    assert drained.status_code == 200, drained.text
    sentence = drained.json()["drain"]["sentence"]
    assert sentence.startswith("roger is being drained by its operator until ")
    assert sentence.endswith(" UTC: new disks.")
    try:
        said = (await ann.post("/v1/offersets", json={**RUN, "platform": "roger"})).json()
        assert (said["result"], said["reasons"][0]["message"]) == ("NO", sentence)
        either = (await ann.post("/v1/offersets", json=RUN)).json()
        assert {one["platform"] for one in either["offers"]} == {"keeling"}
        refused = await ann.post(f"/v1/sessions/{offered}/accept")
        assert (refused.status_code, refused.json()["code"]) == (409, "platform-draining")
        assert refused.json()["detail"] == sentence
        shown = (await ann.get("/v1/platforms/roger")).json()["drain"]
        assert shown["reason"] == "new disks"
        assert OP not in str(shown)
        assert (await ann.get(f"/v1/sessions/{running}")).json()["phase"] == "RUNNING"
    finally:
        undrained = await op.post("/v1/platforms/roger/undrain")
    assert undrained.json()["drain"] is None
    assert (await op.post("/v1/platforms/roger/undrain")).json()["code"] == "not-draining"
    assert (await ann.post(f"/v1/sessions/{offered}/accept")).status_code == 200
    actions = [one[1:] for one in await audited(service, "platform.") if one[0] == OP]
    assert [name for name, _ in actions] == ["roger", "roger"]
    assert actions[0][1]["reason"] == "new disks"
    for wrong in ({"until": "2020-01-01T00:00:00Z"}, {"until": "2026-12-01T12:00:00"}, {"grace": "5m"}):
        assert (await op.post("/v1/platforms/roger/drain", json=wrong)).status_code == 400, wrong
    assert (await op.post("/v1/platforms/nowhere/drain", json={})).status_code == 404


async def test_an_operator_sees_what_someone_runs_and_a_block_names_it(callers: Callers, service: Service) -> None:
    op = await caller(callers, service, OP)
    now = service.now()
    await service.store.write(lambda tx: tx.people.add(Known("cy@example.org", Role.PERSON, now)))
    cy = await caller(callers, service, "cy@example.org")
    his = await begin(cy, service)
    await cy.post("/v1/offersets", json=RUN)
    work = (await op.get("/v1/people/cy@example.org")).json()["work"]
    assert (work["running"], work["waiting"], work["held"], work["tokens"]) == (1, 0, 1, 1)
    assert [one["id"] for one in work["sessions"]] == [his]
    assert any("allow *@example.org on system *" in rule for rule in work["rules"])
    assert (await cy.get("/v1/people/cy@example.org")).json()["work"]["rules"] == [], "rules are the operators'"
    blocked = (await op.post("/v1/people/cy@example.org/block", json={"why": "left"})).json()
    assert (blocked["work"]["running"], blocked["cancelled"]) == (1, [])
    assert (await op.get(f"/v1/sessions/{his}")).json()["phase"] == "RUNNING"
    ended = (await op.post("/v1/people/cy@example.org/block", json={"why": "left", "cancel": True})).json()
    assert ended["cancelled"] == [his]
    await reach(service, his, in_phase(Phase.CANCELLED), Person("cy@example.org"))


async def test_the_page_of_everyones_sessions_filters_asks_and_cancels(callers: Callers, service: Service) -> None:
    ann, ben = await caller(callers, service, ANN), await caller(callers, service, BEN)
    op, eve = await signed_in(callers, service, OP), await signed_in(callers, service, BEN)
    hers, his = await begin(ann, service, name="flood <b>"), await begin(ben, service)
    for path in ("/web/operate", "/web/operate/cancel", "/web/platforms/roger"):
        assert (await eve.get(path)).status_code == 403, path
    page = (await op.get("/web/operate", params={"phase": "active"})).text
    assert all(word in page for word in (hers[:8], his[:8], ANN, BEN, "flood &lt;b&gt;"))
    only = (await op.get("/web/operate", params={"person": ANN, "phase": "active"})).text
    assert (hers[:8] in only, his[:8] in only) == (True, False)
    unknown = await op.get("/web/operate", params={"person": "nobody@example.org"})
    assert (unknown.status_code, "There is no person nobody@example.org." in unknown.text) == (404, True)
    for unread in ("phase=gone", "since=2026-02-30", "until=soon"):
        for path in ("/web/operate", "/web/operate/cancel"):
            wrong = await op.get(f"{path}?{unread}")
            assert (wrong.status_code, hers[:8] in wrong.text) == (400, False), (
                "what can't be read selects nothing more"
            )
    assert hers[:8] in (await op.get("/web/operate", params={"phase": "running"})).text
    question = f"/web/operate/cancel?person={BEN}"
    asked = (await op.get(question)).text
    assert (f"All of {BEN}." in asked, hers[:8] in asked) == (True, False)
    ids = re.search(r'name="sessions" value="([^"]+)"', asked)
    assert ids is not None
    assert his in ids[1].split()
    proof = form_token(service, eve.cookies["sublet_web"], "/web/operate/cancel")
    refused = await eve.post("/web/operate/cancel", data={"token": proof, "sessions": hers})
    assert refused.status_code == 403
    long = await sent(op, question, "/web/operate/cancel", sessions=ids[1], reason="x" * 501)
    assert (long.status_code, "500 characters at most" in long.text) == (400, True)
    done = await sent(op, question, "/web/operate/cancel", sessions=ids[1], reason="too many")
    assert done.status_code == 303
    assert "being cancelled." in (await op.get(done.headers["location"])).text
    ended = await reach(service, his, in_phase(Phase.CANCELLED), Person(BEN))
    assert ended.end is not None
    assert ended.end.detail == "too many"
    one = (await op.get(f"/web/sessions/{hers}")).text
    assert f"is for {ANN} alone" in one
    for path in ("log", "log?tail=9", "log?before=9", "log/download", "files", "archive", "results/f"):
        assert (await op.get(f"/web/sessions/{hers}/{path}")).status_code == 403, path
    cancelled = await sent(op, f"/web/sessions/{hers}", f"/web/sessions/{hers}/cancel", reason="all of it")
    assert cancelled.status_code == 303
    assert (await ann.get(f"/v1/sessions/{hers}")).json()["end"]["detail"] == "all of it"


async def test_the_page_of_a_platform_has_a_switch_that_drains_it(callers: Callers, service: Service) -> None:
    op, ben = await signed_in(callers, service, OP), await signed_in(callers, service, BEN)
    page = "/web/platforms/roger"
    wrong = await sent(op, page, f"{page}/drain", until="soon", reason="racks")
    assert (wrong.status_code, "soon is not a day and a time" in wrong.text, 'value="racks"' in wrong.text) == (
        400,
        True,
        True,
    )
    later = f"{service.now() + timedelta(days=1):%Y-%m-%dT%H:%M}"
    wish = {"until": later, "reason": "racks", "end": "now"}
    asked = await sent(op, page, f"{page}/drain", **wish)
    assert (asked.status_code, "Drain roger and cancel what runs?" in asked.text) == (200, True)
    assert "Let it be used again" not in (await op.get(page)).text, "it was only asked"
    assert (await sent(op, page, f"{page}/drain", **wish, confirmed="yes")).status_code == 303
    drain = (await service.usable_platforms.platform("roger", Person(OP, operator=True))).drain
    assert drain is not None
    assert (drain.reason, drain.by, drain.until is not None, drain.ends is not None) == ("racks", OP, True, True)
    assert "Let it be used again" in (await op.get(page)).text
    assert "roger is being drained by its operator until" in (await ben.get("/web/")).text
    assert (await sent(op, page, f"{page}/undrain")).status_code == 303
    assert "Let it be used again" not in (await op.get(page)).text
