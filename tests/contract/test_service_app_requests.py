"""Requests for apps: pinned to what was approved, looked at again before it starts, and within the rules."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from sublet.access.audit import Sought
from sublet.apps.model.app import VersionState
from sublet.apps.run_requests import AppWish
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import EndKind, OfferSet
from sublet.kernel.errors import AppRefused, AppRevoked, BadManifest, NotFound, NotReviewed, ReviewersOnly, SubletError
from sublet.notices.model.hooks import Hook
from sublet.people.model.person import Person
from sublet.service import Service
from tests.contract.proposals import ANN, BOB, MANIFEST, REVIEWER, approved, begun, trusting
from tests.contract.services import OPERATOR, allow, in_phase, over, reach
from tests.git_server import GitServer, Repository, program

pytestmark = pytest.mark.anyio


@pytest.fixture
def repository(git: GitServer) -> Repository:
    """A repository with an app in it."""
    return begun(git)


@pytest.fixture
async def service(git: GitServer, tmp_path: Path) -> AsyncIterator[Service]:
    """A gateway that trusts that server."""
    async with trusting(git, tmp_path / "home") as running:
        yield running


async def ask(service: Service, person: Person = BOB, **short: object) -> OfferSet:
    """Ask for an app."""
    asked = await service.asking.read(json.dumps(short).encode(), "application/json", person)
    return await service.asking.ask(person, asked)


async def may_run(service: Service) -> None:
    """Let Bob run all apps, everywhere."""
    await allow(service, BOB.name, noun="app", name="*")
    await allow(service, BOB.name, noun="system", name="*")


async def test_a_request_is_pinned_to_the_approved_version(service: Service, repository: Repository) -> None:
    tree = await approved(service, repository)
    refused = await ask(service, app="hello")
    assert (refused.result, refused.reasons[0].kind) == ("NO", "urn:not-allowed")
    [entry] = await service.access.audit.audit(OPERATOR, Sought(action="ask."))
    assert (entry.person, entry.action, entry.noun, entry.name) == (BOB.name, "ask.refused", "app", "hello")
    await may_run(service)
    found = await ask(service, app="hello")
    assert found.result == "YES", found.reasons
    assert found.request.executable is not None
    pinned = found.request.executable.fields["pinned"]
    version = await service.apps.catalogue.version_of("hello@1", REVIEWER)
    assert (pinned, pinned["tree"]) == (version.pinned, tree)
    assert {one.app for one in found.offers} == {version.id}
    assert found.offers[0].offer.shape.cores == 2  # the manifest's own
    assert (await ask(service, app="hello", version=1, cores=4, time="30m")).result == "YES"
    assert (await ask(service, app="hello", cores=1)).offers[0].offer.shape.cores == 1  # what was said counts
    for wrong, field in (
        ({"app": "hello", "cores": 5}, "resources.cores"),
        ({"app": "hello", "time": "2d"}, "resources.time"),
        ({"app": "hello", "version": 7}, "executable.version"),
        ({"app": "nothing"}, "executable.app"),
    ):
        no = await ask(service, **wrong)
        assert (no.result, no.reasons[0].field) == ("NO", field), wrong


async def test_a_list_for_an_app_that_nobody_ran_is_empty_but_a_misspelt_one_is_refused(
    service: Service, repository: Repository
) -> None:
    secret = await service.apps.proposing.propose(ANN, repository.url, name="unread")
    for who in (ANN, REVIEWER):
        assert (await service.sessions.page(who, app="unread")).items == ()
    with pytest.raises(NotFound, match="There is no app unread"):  # not his to know about
        await service.sessions.page(BOB, app="unread")
    await service.apps.reviewing.approve(secret.name, REVIEWER, secret.tree)
    for app in ("unread", "unread@1"):
        assert (await service.sessions.page(BOB, app=app)).items == ()
    with pytest.raises(NotFound, match="There is no version unread@2"):
        await service.sessions.page(BOB, app="unread@2")


async def test_nobody_brings_what_is_pinned_from_outside(service: Service, repository: Repository) -> None:
    await approved(service, repository)
    await may_run(service)
    version = await service.apps.catalogue.version_of("hello@1", REVIEWER)
    document = {"executable": {"kind": "urn:sublet:kind:executable:app", "app": "hello", "pinned": version.pinned}}
    no = await ask(service, **document)
    assert (no.result, no.reasons[0].field) == ("NO", "executable.pinned")
    data = await ask(service, app="hello", data=[f"app:{version.tree}"])
    assert data.result == "NO"


async def test_nobody_lays_anything_over_the_code_that_was_reviewed(service: Service, repository: Repository) -> None:
    await approved(service, repository)
    await may_run(service)
    for path in ("/job/executable/hello.sh", "executable", "/bin/sh", "/job"):
        for more in (
            {"data": [{"location": "https://8.8.8.8/hello.sh", "path": path}]},
            {"storage": [{"name": "executable", "size": "1GiB", "path": path}]},
            {"data": ["https://8.8.8.8/hello.sh"], "volumes": [{"resource": "hello", "path": path}]},
        ):
            no = await ask(service, app="hello", **more)
            assert (no.result, "/job/data" in no.reasons[0].message) == ("NO", True), (path, more, no.reasons)
    for field in ("env", "environment", "script", "run", "image"):
        with pytest.raises(SubletError):
            await ask(service, app="hello", **{field: {"PATH": "/job/data"}})


async def test_an_app_gets_no_more_than_its_rules_whatever_its_manifest_says(service: Service, git: GitServer) -> None:
    greedy = git.repository("ann/greedy")
    wants = MANIFEST.replace("{min: 1, max: 4, default: 2}", "{min: 4, max: 512, default: 512}")
    greedy.commit({"sublet.yaml": wants, "hello.sh": program("echo hello\n")}, "Begin")
    await approved(service, greedy, "greedy")
    await allow(service, BOB.name, noun="system", name="*")
    await allow(service, BOB.name, noun="app", name="greedy", cores=2)
    for asked in ({}, {"cores": 4}, {"cores": "4-512"}):
        no = await ask(service, app="greedy", **asked)
        assert (no.result, no.reasons[0].limit) == ("NO", "2 cores"), no.reasons
    greedy.commit({"sublet.yaml": f"{MANIFEST}systems: [elsewhere]\n", "hello.sh": program("echo hello\n")}, "Move")
    await approved(service, greedy, "greedy")
    for there in ({}, {"platform": "trial"}):
        [reason] = (await ask(service, app="greedy", cores=2, **there)).reasons
        assert (reason.kind, reason.message) == ("urn:not-supported", "greedy runs on elsewhere, not on trial.")
    raw = git.repository("ann/raw")
    raw.commit({"manifest.json": json.dumps({"name": "raw", "execution_stage_in_raw_sbatch": ["touch /tmp/x"]})})
    with pytest.raises(BadManifest, match="outside the container"):
        await service.apps.proposing.propose(ANN, raw.url, name="raw")


async def test_an_offer_of_a_revoked_version_is_not_accepted(service: Service, repository: Repository) -> None:
    await approved(service, repository)
    await may_run(service)
    found = await ask(service, app="hello")
    with pytest.raises(ReviewersOnly):
        await service.apps.reviewing.revoke("hello", ANN, "no")
    done = await service.apps.reviewing.revoke("hello", REVIEWER, "It reads too much.")
    assert (done.version.state, done.sessions) == (VersionState.REVOKED, ())
    with pytest.raises(AppRefused, match="It reads too much"):
        await service.sessions.accept(found.offers[0].id, BOB)
    [entry] = await service.access.audit.audit(OPERATOR, Sought(action="accept."))
    assert (entry.person, entry.action, entry.name) == (BOB.name, "accept.refused", "hello@1")
    assert (await service.apps.catalogue.apps(BOB)) == []
    told = f"hello@1 was revoked on {done.version.when} and can't be run any more: It reads too much."
    assert [reason.message for reason in (await ask(service, app="hello")).reasons] == [told]
    for wish in (AppWish(app="hello"), AppWish(app="hello", version="1"), AppWish(repository=repository.url)):
        for person in (BOB, ANN):
            with pytest.raises(AppRevoked) as known:
                await service.apps.runs.runnable(person, wish)
            assert str(known.value) == told
        with pytest.raises((NotFound, NotReviewed)) as unknown:
            await service.apps.runs.runnable(Person("eve@example.net"), wish)
        assert not isinstance(unknown.value, AppRevoked)
    await approved(service, repository)
    assert (await ask(service, app="hello@1")).reasons[0].message == f"{told} These can be run: hello@2."
    with pytest.raises(AppRevoked):
        await service.apps.runs.runnable(BOB, AppWish(app="hello", version="1"))


async def test_running_sessions_are_told_and_waiting_ones_end(service: Service, repository: Repository) -> None:
    await approved(service, repository)
    await may_run(service)
    running = await service.sessions.accept((await ask(service, app="hello", time="10m")).offers[0].id, BOB)
    await reach(service, running.id, in_phase(Phase.RUNNING), BOB)
    later = (service.now() + timedelta(hours=3)).strftime("%Y-%m-%dT%H:%M:%SZ/P1D")
    waiting = await service.sessions.accept(
        (await ask(service, app="hello", time="10m", start=later)).offers[0].id, BOB
    )
    done = await service.apps.reviewing.revoke("hello@1", REVIEWER, "It leaks.")
    assert set(done.sessions) == {running.id, waiting.id}
    told = await service.sessions.get(running.id, BOB)
    assert told.condition == "its app hello@1 was revoked: It leaks."
    assert told.phase is Phase.RUNNING
    events = await service.store.read(lambda tx: tx.events.after(0, session=running.id))
    [event] = [event for event in events if event.kind == "session.app-revoked"]
    assert event.kind in Hook("", "", "", "", "", (), event.time, event.time).kinds, "hooks hear of it"
    stored = await service.sessions.offerset_of(waiting)
    assert "revoked: It leaks." in await service.apps.approved.find_objection(waiting, stored.request)
    ended = await over(service, waiting.id, BOB)
    assert ended.end is not None
    assert (ended.phase, ended.end.kind, ended.end.detail) == (Phase.FAILED, EndKind.NOT_APPROVED, told.condition)
    assert ended.start is not None
    assert ended.start - service.now() > timedelta(hours=2), "nothing is booked until then"


async def test_what_is_in_a_sites_queue_when_its_app_is_revoked_never_starts(
    git: GitServer, repository: Repository, tmp_path: Path
) -> None:
    queue = {"kind": "memory", "terms": "predicted", "waits": ["1h", "1h", "1h"]}
    async with trusting(git, tmp_path / "queue", platforms={"trial": queue}) as service:
        await approved(service, repository)
        await may_run(service)
        queued = await service.sessions.accept((await ask(service, app="hello")).offers[0].id, BOB)
        await reach(service, queued.id, lambda one: "queue" in one.condition, BOB)
        assert (await service.apps.reviewing.revoke("hello@1", REVIEWER, "It leaks.")).sessions == (queued.id,)
        ended = await over(service, queued.id, BOB)
        assert (ended.phase, ended.end and ended.end.by) == (Phase.CANCELLED, REVIEWER.name)
        events = await service.store.read(lambda tx: tx.events.after(0, session=queued.id))
        assert "session.app-revoked" in [event.kind for event in events]
        assert "session.running" not in [event.kind for event in events]


async def test_a_revocation_can_end_what_runs(service: Service, repository: Repository) -> None:
    await approved(service, repository)
    await may_run(service)
    running = await service.sessions.accept((await ask(service, app="hello", time="10m")).offers[0].id, BOB)
    await reach(service, running.id, in_phase(Phase.RUNNING), BOB)
    await service.apps.reviewing.revoke("hello@1", REVIEWER, "It leaks.", cancel=True)
    ended = await over(service, running.id, BOB)
    assert (ended.phase, ended.end and ended.end.by) == (Phase.CANCELLED, REVIEWER.name)


async def test_code_that_was_changed_between_accept_and_start_is_not_started(
    service: Service, repository: Repository
) -> None:
    tree = await approved(service, repository)
    await may_run(service)
    found = await ask(service, app="hello")
    archive = service.apps.catalogue.archives / f"{tree}.tar"
    code = archive.read_bytes()

    async def refused(found: OfferSet) -> str:
        session = await service.sessions.accept(found.offers[0].id, BOB)
        ended = await over(service, session.id, BOB)
        assert ended.end is not None
        assert (ended.phase, ended.end.kind) == (Phase.FAILED, EndKind.NOT_APPROVED)
        return ended.end.detail

    archive.write_bytes(b"#!/bin/sh")
    assert "its code on this machine is not what was approved" in await refused(found)
    archive.write_bytes(code)
    with sqlite3.connect(service.settings.home / "sublet.db") as stored:
        stored.execute("UPDATE versions SET manifest = replace(manifest, 'hello.sh', 'other.sh')")
    assert "what it was to run is not what was approved" in await refused(await ask(service, app="hello"))


async def test_under_an_account_only_apps_run(service: Service, repository: Repository) -> None:
    """The account is played: what counts is that the service takes the platform for one."""
    service.platforms.accounts.add("trial")
    await allow(service, BOB.name, noun="account", name="*")
    await allow(service, BOB.name, noun="app", name="*")
    await approved(service, repository)
    no = await ask(service, image="docker.io/library/alpine", run=["true"])
    assert (no.result, no.reasons[0].field) == ("NO", "executable.kind")
    assert "only apps that were reviewed" in no.reasons[0].message
    assert (await ask(service, app="hello")).result == "YES"
    service.platforms.accounts.clear()
