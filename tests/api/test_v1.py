"""Sublet's own resources under /v1."""

from __future__ import annotations

import asyncio
import gzip
import io
import tarfile
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from sublet.booking.views.moves import PauseView
from sublet.booking.views.offers import OfferSetView
from sublet.booking.views.sessions import SessionPage, SessionView
from sublet.kernel.views import read
from tests.api.conftest import HOST, Callers

pytestmark = pytest.mark.anyio

SHORT: dict[str, Any] = {"run": ["true"], "cores": 2, "memory": "1GiB", "time": "10m", "name": "probe"}
OVER = {"COMPLETED", "FAILED", "CANCELLED"}


async def ask(client: httpx2.AsyncClient, **more: Any) -> OfferSetView:
    answer = await client.post("/v1/offersets", json=SHORT | more)
    assert answer.status_code == 201, answer.text
    return read(OfferSetView, answer.json())


async def look(client: httpx2.AsyncClient, session: str) -> SessionView:
    return read(SessionView, (await client.get(f"/v1/sessions/{session}")).json())


async def run(client: httpx2.AsyncClient, **more: Any) -> SessionView:
    """A session that has come to its end."""
    offers = (await ask(client, **more)).offers
    assert (await client.post(f"/v1/sessions/{offers[0].id}/accept")).status_code == 200
    deadline = datetime.now(UTC) + timedelta(seconds=30)
    while (session := await look(client, offers[0].id)).phase not in OVER:
        assert datetime.now(UTC) < deadline, session
        await asyncio.sleep(0.05)
    return session


async def test_asking_in_the_short_form_is_answered_with_offers_and_an_address(ann: httpx2.AsyncClient) -> None:
    answer = await ann.post("/v1/offersets", json=SHORT)
    made = read(OfferSetView, answer.json())
    assert (made.result, made.kind, made.name) == ("YES", "command", "probe")
    assert (made.offers[0].cores, made.offers[0].memory, made.offers[0].duration) == (2, 1 << 30, timedelta(minutes=10))
    assert answer.headers["location"] == f"{HOST}/v1/offersets/{made.id}"
    assert read(OfferSetView, (await ann.get(answer.headers["location"])).json()) == made


async def test_asking_in_yaml_is_asking(ann: httpx2.AsyncClient) -> None:
    body = b"run: [echo, 'no']\ntime: 1h30m\nmemory: 2GiB\n"
    answer = await ann.post("/v1/offersets", content=body, headers={"content-type": "application/yaml"})
    assert answer.json()["offers"][0]["duration"] == "PT1H30M"


async def test_a_no_says_the_field_the_limit_and_the_nearest_yes(ann: httpx2.AsyncClient) -> None:
    made = await ask(ann, cores=64)
    assert (made.result, made.offers, made.expires) == ("NO", (), None)
    reason = next(reason for reason in made.reasons if reason.kind == "urn:resource-limit")
    assert "cores" in reason.field
    assert (reason.wanted, reason.limit) == ("64", "16")
    assert reason.nearest


async def test_a_session_is_found_by_the_beginning_of_its_id(ann: httpx2.AsyncClient) -> None:
    offer = (await ask(ann)).offers[0]
    assert (await look(ann, offer.short)).id == offer.id
    assert (await ann.get("/v1/sessions/ffff-no-such")).status_code == 404


async def test_an_accepted_session_runs_to_its_end_and_everything_is_on_record(ann: httpx2.AsyncClient) -> None:
    session = await run(ann)
    assert session.phase == "COMPLETED", session
    assert session.end is not None
    assert (session.end.kind, session.end.code, session.end.sentence) == ("exited", 0, "It exited with code 0.")
    assert session.options == ()
    events = (await ann.get("/v1/events", params={"session": session.id})).json()["items"]
    phases = [event["phase"] for event in events]
    assert phases[0] == "ACCEPTED"
    assert phases[-1] == "COMPLETED"
    explained = (await ann.get(f"/v1/sessions/{session.id}/explain")).json()
    assert (explained["phase"], explained["session"]) == ("COMPLETED", session.id)
    assert explained["sentences"]


async def test_what_it_printed_is_read_by_offset(ann: httpx2.AsyncClient) -> None:
    session = await run(ann)
    whole = await ann.get(f"/v1/sessions/{session.id}/logs")
    assert whole.headers["content-type"].startswith("text/plain")
    assert whole.headers["sublet-ended"] == "true"
    assert whole.headers["sublet-next-offset"] == str(len(whole.content))
    assert whole.content
    rest = await ann.get(f"/v1/sessions/{session.id}/logs", params={"offset": 2, "limit": 3})
    assert rest.content == whole.content[2:5]
    tail = await ann.get(f"/v1/sessions/{session.id}/logs", params={"tail": len(whole.content) - 3})
    start = whole.content.index(b"\n") + 1
    assert (tail.content, int(tail.headers["sublet-offset"])) == (whole.content[start:], start)
    assert (await ann.get(f"/v1/sessions/{session.id}/logs", params={"tail": "1MiB"})).content == whole.content
    assert (await ann.get(f"/v1/sessions/{session.id}/logs", params={"tail": "much"})).status_code == 400
    followed = await ann.get(f"/v1/sessions/{session.id}/logs", params={"follow": True})
    assert followed.content == whole.content


async def test_what_it_left_is_listed_sent_and_packed(ann: httpx2.AsyncClient) -> None:
    session = await run(ann)
    files = (await ann.get(f"/v1/sessions/{session.id}/results")).json()["items"]
    contents = {}
    for file in files:
        sent = await ann.get(f"/v1/sessions/{session.id}/results/{file['path']}")
        assert (sent.status_code, len(sent.content)) == (200, file["size"])
        assert sent.headers["content-disposition"].startswith("attachment")
        contents[f"{session.short}/{file['path']}"] = sent.content
    packed = await ann.get(f"/v1/sessions/{session.id}/archive")
    assert packed.headers["content-type"] == "application/gzip"
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(packed.content))) as archive:
        assert set(archive.getnames()) == set(contents)
    for path in ("../../key", "%2e%2e/%2e%2e/key", "nothing", "/etc/passwd"):
        assert (await ann.get(f"/v1/sessions/{session.id}/results/{path}")).status_code == 404


async def test_sessions_are_listed_newest_first_filtered_and_paged(ann: httpx2.AsyncClient) -> None:
    names = [f"n{number}" for number in range(5)]
    for name in names:
        await ask(ann, name=name, start="2027-01-04T09:00:00Z/PT0S")
    seen: list[str] = []
    after: str | None = None
    while True:
        params: dict[str, Any] = {"limit": 2, "phase": "OFFERED"} | ({"after": after} if after else {})
        page = read(SessionPage, (await ann.get("/v1/sessions", params=params)).json())
        seen += [session.name for session in page.items]
        after = page.next
        if after is None:
            break
    assert list(dict.fromkeys(seen)) == names[::-1]
    named = (await ann.get("/v1/sessions", params={"name": "n3"})).json()["items"]
    assert {session["name"] for session in named} == {"n3"}
    assert (await ann.get("/v1/sessions", params={"active": True})).json()["items"] == []
    assert (await ann.get("/v1/sessions", params={"kind": "bag"})).json()["items"] == []
    assert (await ann.get("/v1/sessions", params={"after": "nonsense"})).status_code == 400


async def test_others_sessions_are_neither_listed_nor_touched(ann: httpx2.AsyncClient, bob: httpx2.AsyncClient) -> None:
    session = await run(ann)
    assert (await bob.get("/v1/sessions")).json()["items"] == []
    assert (await bob.get("/v1/events")).json()["items"] == []
    base = f"/v1/sessions/{session.id}"
    for path in ("", "/logs", "/logs?follow=true", "/results", "/results/x", "/archive", "/explain"):
        assert (await bob.get(base + path)).status_code == 403, path
    for path in ("/accept", "/reject", "/cancel"):
        assert (await bob.post(base + path)).status_code == 403, path
    assert (await bob.post(f"{base}/extend", json={"by": "1h"})).status_code == 403
    assert (await bob.delete(base)).status_code == 403
    assert (await bob.get("/v1/events", params={"session": session.id})).status_code == 403


async def test_an_offer_is_rejected_and_a_session_cancelled_and_deleted(ann: httpx2.AsyncClient) -> None:
    first, *_ = (await ask(ann)).offers
    assert (await ann.post(f"/v1/sessions/{first.id}/reject")).json()["phase"] == "REJECTED"
    assert (await ann.post(f"/v1/sessions/{first.id}/accept")).status_code == 409
    other = (await ask(ann, start="2027-01-04T09:00:00Z/PT0S")).offers[0]
    await ann.post(f"/v1/sessions/{other.id}/accept")
    assert (await ann.delete(f"/v1/sessions/{other.id}")).status_code == 409
    cancelled = read(SessionView, (await ann.post(f"/v1/sessions/{other.id}/cancel")).json())
    assert cancelled.phase == "CANCELLED"
    assert (await ann.delete(f"/v1/sessions/{other.id}")).status_code == 204
    assert (await ann.get(f"/v1/sessions/{other.id}")).status_code == 404


async def test_a_session_is_extended_by_a_time_or_until_an_instant_but_not_both(ann: httpx2.AsyncClient) -> None:
    offer = (await ask(ann, start="2027-01-04T09:00:00Z/PT0S")).offers[0]
    path = f"/v1/sessions/{offer.id}/extend"
    await ann.post(f"/v1/sessions/{offer.id}/accept")
    longer = read(SessionView, (await ann.post(path, json={"by": "30m"})).json())
    assert longer.until == offer.until + timedelta(minutes=30)
    until = (offer.until + timedelta(hours=2)).isoformat()
    assert read(SessionView, (await ann.post(path, json={"until": until})).json()).duration == timedelta(
        hours=2, minutes=10
    )
    for bad in ({}, {"by": "30m", "until": until}, {"by": "long"}, {"until": "2027-01-04T12:00:00"}, {"by": 5}, []):
        assert (await ann.post(path, json=bad)).status_code == 400, bad


async def test_platforms_and_their_calendar_are_shown_without_saying_who(ann: httpx2.AsyncClient) -> None:
    platforms = (await ann.get("/v1/platforms")).json()["items"]
    assert [(p["name"], p["kind"], len(p["nodes"])) for p in platforms] == [("memory", "memory", 100)]
    assert (await ann.get("/v1/platforms/memory")).json() == platforms[0]
    offer = (await ask(ann, start="2027-02-01T09:00:00Z/PT0S")).offers[0]
    await ann.post(f"/v1/sessions/{offer.id}/accept")
    params = {"platform": "memory", "start": "2027-02-01T00:00:00Z", "end": "2027-02-02T00:00:00Z"}
    calendar = (await ann.get("/v1/calendar", params=params)).json()
    lanes = {lane["name"]: lane["busy"] for lane in calendar["lanes"] if not lane["pool"]}
    assert [busy["cores"] for busy in lanes[offer.nodes[0]]] == [2]
    assert "ann-" not in str(calendar)
    assert (
        await ann.get("/v1/calendar", params={"start": "2027-01-04T00:00:00Z", "end": "2026-01-01T00:00:00Z"})
    ).status_code == 400


async def test_only_an_operator_tries_a_platform(ann: httpx2.AsyncClient, callers: Callers) -> None:
    assert (await ann.post("/v1/platforms/memory/check")).status_code == 403
    operator = await callers.someone("olga", operator=True)
    found = (await operator.post("/v1/platforms/memory/check")).json()["items"]
    assert found
    assert all(finding["ok"] for finding in found), found


async def test_tokens_are_made_listed_and_revoked(ann: httpx2.AsyncClient, callers: Callers) -> None:
    made = (await ann.post("/v1/tokens", json={"note": "laptop", "expires": "30d"})).json()
    me = (await ann.get("/v1/whoami")).json()
    assert (made["person"], made["note"]) == (me["person"], "laptop")
    laptop = await callers.with_headers({"authorization": f"Bearer {made['token']}"})
    assert (await laptop.get("/v1/whoami")).json() == me
    assert (me["mode"], me["operator"], me["role"], me["scope"]) == ("personal", False, "person", [])
    listed = (await ann.get("/v1/tokens")).json()["items"]
    assert made["id"] in {token["id"] for token in listed}
    assert all(token["token"] == "" for token in listed)
    assert (await ann.delete(f"/v1/tokens/{made['id']}")).status_code == 204
    assert (await laptop.get("/v1/whoami")).status_code == 401
    assert (await ann.delete(f"/v1/tokens/{made['id']}")).status_code == 404
    assert (await ann.post("/v1/tokens", json={"person": "bob"})).status_code == 403
    assert (await ann.post("/v1/tokens", json={"expires": "soon"})).status_code == 400


async def test_health_needs_no_token_and_metrics_of_a_personal_service_are_its_owners(
    ann: httpx2.AsyncClient, anonymous: httpx2.AsyncClient, callers: Callers
) -> None:
    await ask(ann)
    for caller, names in ((anonymous, []), (ann, ["memory"])):
        health = (await caller.get("/health")).json()
        assert (health["status"], health["mode"], health["platforms"]) == ("ok", "personal", names)
    assert [(await who.get("/metrics")).status_code for who in (anonymous, ann)] == [401, 403]
    page = (await (await callers.someone("owner", operator=True)).get("/metrics")).text
    assert 'sublet_http_requests_total{code="201",method="POST",route="/v1/offersets"}' in page
    assert "sublet_offersets_total" in page
    assert "ann-" not in page


@pytest.mark.parametrize("address", ["/health", "/v1/whoami", "/v1/events", "/v1/sessions"])
async def test_head_says_what_get_would_without_the_content(ann: httpx2.AsyncClient, address: str) -> None:
    answer = await ann.head(address, headers={"accept": "text/event-stream" if "events" in address else "*/*"})
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"]


async def test_head_of_nothing_is_not_found(ann: httpx2.AsyncClient) -> None:
    assert (await ann.head("/v1/sessions/nothing")).status_code == 404


async def test_a_session_is_paused_and_goes_on_by_its_owner_alone(
    ann: httpx2.AsyncClient, bob: httpx2.AsyncClient
) -> None:
    offer = (await ask(ann, env={"SUBLET_PLAY_TAKES": "1h"}, time="1h")).offers[0]
    assert (await ann.post(f"/v1/sessions/{offer.id}/pause")).json()["code"] == "not-allowed-now"
    await ann.post(f"/v1/sessions/{offer.id}/accept")
    deadline = datetime.now(UTC) + timedelta(seconds=30)
    while (await look(ann, offer.id)).phase != "RUNNING":
        assert datetime.now(UTC) < deadline
        await asyncio.sleep(0.05)
    assert (await bob.post(f"/v1/sessions/{offer.id}/pause")).status_code == 403
    said = read(PauseView, (await ann.post(f"/v1/sessions/{offer.id}/pause")).json())
    assert said.how == "stopped on its node; its time runs on"
    assert said.session.condition == "paused: stopped on its node; its time runs on"
    said = read(PauseView, (await ann.post(f"/v1/sessions/{offer.id}/resume")).json())
    assert (said.how, said.session.condition) == ("continued on its node", "")
    await ann.post(f"/v1/sessions/{offer.id}/cancel")
