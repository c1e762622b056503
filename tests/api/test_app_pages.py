"""An app is run on its page: asked for as by any client, with what is wrong beside what was typed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from html import unescape

import httpx2
import pytest

from sublet.app import open_service
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.kernel.settings import Settings
from sublet.people.model.people import Known, Role
from sublet.people.model.person import Person
from sublet.service import Service
from tests.api.conftest import Callers
from tests.api.test_access_pages import sent, signed_in
from tests.contract.services import OPERATOR, allow
from tests.git_server import git_server, program

pytestmark = pytest.mark.anyio
ANN, BOB, EVE, RAE = "ann@example.org", "bob@example.org", "eve@example.net", "rae@example.org"
HERE = "/web/apps/flood"
MANIFEST = f"""
name: flood
description: Where the <b>water</b> goes.
image: {{location: "docker://ghcr.io/ann/flood", digest: "sha256:{"b" * 64}"}}
run: sh flood.sh
parameters:
  years: {{type: integer, minimum: 0, maximum: 50, default: 10, unit: a, title: "How many <i>years</i>"}}
  label: {{type: string, default: here, maxLength: 40, pattern: "^[a-z]*$"}}
  fast: {{type: boolean, default: true}}
  model: {{enum: [old, new, 3], default: old}}
  who: {{type: string}}
resources:
  tasks: {{min: 1, max: 4, default: 2}}
  time: 10m-2h
data:
  rain: {{required: true, description: what fell}}
systems: [keeling, expanse, closed]
"""
GOOD = {
    "version": "1",
    "parameters.years": "0",
    "parameters.label": "",
    "parameters.model": "3",
    "parameters.who": "bob",
    "resources.tasks": "2",
    "resources.time": "20m",
    "data.rain": "https://example.org/rain.nc",
    "hpc": "keeling",
}


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """A gateway with an approved app, two places for it, one where it does not run, and one that is closed."""
    with git_server(tmp_path_factory.mktemp("git")) as server:
        settings = Settings.load(
            tmp_path_factory.mktemp("home"),
            mode="gateway",
            platforms={name: {"kind": "memory"} for name in ("keeling", "expanse", "other", "closed")},
            apps={"private": [f"{server.url}/*"]},
        )
        repository = server.repository("ann/flood")
        repository.commit({"sublet.yaml": MANIFEST, "flood.sh": program("echo 1\n")})
        async with open_service(settings, loop=False) as opened:
            now = opened.now()
            for name in (ANN, BOB, EVE):
                await opened.store.write(lambda tx, name=name: tx.people.add(Known(name, Role.PERSON, now)))
            version = await opened.apps.proposing.propose(Person(ANN), repository.url)
            await opened.apps.reviewing.approve("flood@1", Person(RAE, reviewer=True), version.tree)
            await allow(opened, "*@example.org", noun="app")
            for name in ("keeling", "expanse", "other"):
                await allow(opened, BOB, name=name)
            yield opened


@pytest.fixture
async def bob(callers: Callers, service: Service) -> httpx2.AsyncClient:
    return await signed_in(callers, service, BOB)


async def test_the_form_is_what_the_manifest_says(bob: httpx2.AsyncClient) -> None:
    text = (await bob.get(HERE)).text
    for words in (
        "Where the &lt;b&gt;water&lt;/b&gt; goes.",
        'type="number" id="parameter-0" name="parameters.years" value="10"',
        'min="0" max="50" step="1"',
        "How many &lt;i&gt;years&lt;/i&gt;",
        'maxlength="40" pattern=".*(?:^[a-z]*$).*"',
        'type="checkbox" id="parameter-2" name="parameters.fast" value="true" checked',
        '<option value="&#34;old&#34;" selected>old</option>',
        'name="data.rain" value=""',
        '<option value="keeling">keeling</option><option value="expanse">expanse</option></select>',
    ):
        assert words in text, words
    assert "<script>" not in text
    assert " style=" not in text


async def test_what_is_filled_in_is_asked_for_and_offered(bob: httpx2.AsyncClient, service: Service) -> None:
    answer = await sent(bob, HERE, HERE, **GOOD)
    assert answer.status_code == 303, answer.text
    where = answer.headers["location"]
    assert where.startswith("/web/offersets/")
    found = await service.asking.offerset(where.rpartition("/")[2], Person(BOB))
    executable = found.request.executable
    assert executable is not None
    assert executable.fields["parameters"] == {"years": 0, "label": "", "fast": False, "model": 3, "who": "bob"}
    assert {one.offer.platform for one in found.offers} == {"keeling"}
    assert found.offers[0].offer.duration.total_seconds() == 1200
    again = await bob.get("/web/ask", params={"from": found.id})
    assert again.headers["location"] == f"{HERE}?from={found.id}"
    text = (await bob.get(again.headers["location"])).text
    for words in ('name="parameters.years" value="0"', '<option value="3" selected>', 'value="20m"', "rain.nc"):
        assert words in text, words
    assert 'name="parameters.fast" value="true" checked' not in text


async def test_a_no_comes_back_with_the_reasons_beside_what_was_typed(bob: httpx2.AsyncClient) -> None:
    evil = '"><script>alert(1)</script>'
    wrong = {"parameters.years": "99", "parameters.label": evil, "parameters.who": "", "data.rain": "", "name": evil}
    answer = await sent(bob, HERE, HERE, **GOOD | wrong)
    assert answer.status_code == 400
    text = answer.text
    for words in (
        'name="parameters.years" value="99"',
        'id="parameter-0-wrong">the parameter years must be within 0 to 50 a, not 99. <span>Possible: 50.</span>',
        'id="parameter-1-wrong"',
        'id="parameter-4-wrong">flood needs the parameter who.',
        'id="data-0-wrong">flood needs the data rain: what fell.',
        '<a href="#parameter-0">',
        '<option value="3" selected>',
    ):
        assert words in text, words
    assert "<script>alert" not in text
    assert evil in unescape(text)
    amount = await sent(bob, HERE, HERE, **GOOD | {"resources.time": "soon", "parameters.years": "many"})
    assert 'id="resource-time-wrong"' in amount.text
    assert 'type="text" id="parameter-0" name="parameters.years" value="many"' in amount.text
    range_ = await sent(bob, HERE, HERE, **GOOD | {"resources.tasks": "9"})
    assert 'id="resource-tasks-wrong">flood can use 1 to 4 of tasks, not 9.' in range_.text
    place = await sent(bob, HERE, HERE, **GOOD | {"data.rain": "globus://x/y"})
    assert (place.status_code, 'id="data-0-wrong"' in place.text) == (400, True)


async def test_a_scheduler_is_asked_in_the_form_for_what_the_rules_allow(
    bob: httpx2.AsyncClient, service: Service
) -> None:
    text = (await bob.get(HERE)).text
    assert "<summary>Scheduler options</summary>" in text
    assert ('name="scheduler.nice"' in text, 'name="scheduler.queue"' in text) == (True, False)
    answer = await sent(bob, HERE, HERE, **GOOD | {"scheduler.constraint": "gpu", "scheduler.nice": "5"})
    assert answer.status_code == 303, answer.text
    found = await service.asking.offerset(answer.headers["location"].rpartition("/")[2], Person(BOB))
    assert found.request.scheduler == SchedulerOptions(constraint="gpu", nice=5)
    again = (await bob.get(f"{HERE}?from={found.id}")).text
    assert ('name="scheduler.constraint" value="gpu"' in again, '<details class="more" open>' in again) == (True, True)
    for name, typed in (("queue", "short"), ("options", "switches=1"), ("nice", "many")):
        no = await sent(bob, HERE, HERE, **GOOD | {f"scheduler.{name}": typed})
        assert (no.status_code, f'id="scheduler-{name}-wrong"' in no.text) == (400, True), no.text


async def test_a_scheduler_is_asked_over_http_for_what_the_rules_allow(callers: Callers, service: Service) -> None:
    _, secret = await service.people.tokens.make_token(Person(BOB))
    bob = await callers.with_headers({"authorization": f"Bearer {secret}"})
    wish = {"set": {"who": "bob"}, "data": {"rain": "https://example.org/rain.nc"}}
    for asked, status, result in (({"nice": 5}, 201, "YES"), ({"queue": "short"}, 201, "NO"), ({"nic": 5}, 400, None)):
        answer = await bob.post("/v1/offersets/apps/flood", json={**wish, "scheduler": asked})
        assert (answer.status_code, answer.json().get("result")) == (status, result), answer.text


async def test_only_what_is_open_is_asked_whatever_the_form_says(
    bob: httpx2.AsyncClient, callers: Callers, service: Service
) -> None:
    for place in ("closed", "other", "nowhere"):
        answer = await sent(bob, HERE, HERE, **GOOD | {"hpc": place})
        assert (answer.status_code, 'id="where-wrong"' in answer.text) == (400, True), place
    gone = await sent(bob, HERE, HERE, **GOOD | {"version": "7"})
    assert gone.status_code == 404
    assert (await bob.post(HERE, data=GOOD | {"token": "0" * 64})).status_code == 403
    eve = await signed_in(callers, service, EVE)
    stranger = await eve.get(HERE)
    assert (stranger.status_code, "Ask for access" in stranger.text) == (403, True)
    assert "years" not in stranger.text
    ann = await signed_in(callers, service, ANN)
    text = (await ann.get(HERE)).text
    assert ("You can't run it now." in text, 'action="/web/apps/flood"' in text) == (True, False)


async def test_an_app_that_nobody_approved_has_no_form(callers: Callers, service: Service) -> None:
    await service.apps.reviewing.revoke("flood@1", OPERATOR, "It leaks.")
    ann = await signed_in(callers, service, ANN)
    text = (await ann.get(HERE)).text
    assert ("Nothing of it is approved" in text, "See the offers" in text) == (True, False)
