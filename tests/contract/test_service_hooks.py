"""Hooks on a real receiver: signed, once, again if it failed, given up in the end, and never to private places."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.booking.model.phases import Phase
from sublet.kernel.calling import call
from sublet.kernel.errors import BadHook, BadRequest, NotFound, NotTold, NotYours, TooMany, TooManyHooks
from sublet.kernel.faults import HOOK_POINTS
from sublet.notices.messages import is_signed
from sublet.notices.model.hooks import TRIES, Delivery
from sublet.people.model.person import Person
from sublet.service import Service
from tests.clocks import set_clock
from tests.contract.services import ME, OTHER, ask, over, serving
from tests.nursery import typed
from tests.receivers import Receiver, receiving
from tests.smtp import running_smtp

pytestmark = pytest.mark.anyio
SOON = {"trial": {"kind": "memory", "takes": "0s"}}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


async def run_one(service: Service) -> str:
    mine = await ask(service)
    return (await over(service, (await service.sessions.accept(mine.offers[0].id, ME)).id)).id


async def told(service: Service, tries: int = 1) -> Delivery:
    """The last delivery of the first hook, once it was tried so often and answered for."""
    async with asyncio.timeout(30):
        while True:
            found = [one for _, some in await service.notices.hooks.hooks(ME) for one in some]
            if found and found[0].tries >= tries and found[0].answer:
                return found[0]
            await service.signals.wait(0.05)


async def given_up_for(service: Service) -> str:
    """Why the first hook was given up, once it was."""
    async with asyncio.timeout(30):
        while not (why := (await service.notices.hooks.hooks(ME))[0][0].trouble):
            await service.signals.wait(0.05)
        return why


async def test_each_change_is_told_once_signed_and_of_ones_own_sessions_alone(
    tmp_path: Path, receiver: Receiver
) -> None:
    async with serving(tmp_path, platforms=SOON) as service:
        hook, secret = await service.notices.hooks.add_hook(ME, receiver.url, events=["accepted", "ended"])
        foreign = await ask(service, OTHER)
        await service.sessions.accept(foreign.offers[0].id, OTHER)
        id = await run_one(service)
        calls = await asyncio.to_thread(receiver.wait, 2)
        await told(service)
        said = sorted((json.loads(one.body) for one in calls), key=lambda one: int(one["event"]["id"]))
        assert [(one["session"]["id"], one["event"]["kind"]) for one in said] == [
            (id, "session.accepted"),
            (id, "session.completed"),
        ]
        assert said[1]["session"]["phase"] == Phase.COMPLETED
        for one in calls:
            assert is_signed(secret, one.headers["sublet-signature"], one.body, datetime.now(UTC))
        assert len({one.headers["sublet-delivery"] for one in calls}) == 2
        assert secret not in (hook.secret, *(str(row) for row in await service.notices.hooks.hooks(ME)))
        assert await service.notices.hooks.test_hook(ME, hook.id[:8]) == "200 OK"
        await service.notices.hooks.remove_hook(ME, hook.id)
        await run_one(service)
        assert len(receiver.calls) == 3
        actions = [entry.action for entry in await service.store.read(lambda tx: tx.audit.list())]
        assert actions == ["hook.add", "hook.remove"]


async def test_a_hook_of_one_session_is_its_owners(tmp_path: Path, receiver: Receiver) -> None:
    async with serving(tmp_path, platforms=SOON) as service:
        mine = await ask(service)
        id = mine.offers[0].id
        with pytest.raises(NotYours):
            await service.notices.hooks.add_hook(OTHER, receiver.url, session=id)
        hook, _ = await service.notices.hooks.add_hook(ME, receiver.url, session=id[:8], events=["cancelled"])
        for act in (service.notices.hooks.remove_hook, service.notices.hooks.test_hook):
            with pytest.raises(NotFound):
                await act(OTHER, hook.id)
        assert await service.notices.hooks.hooks(OTHER) == []
        await run_one(service)
        await service.sessions.cancel(id, ME)
        [only] = await asyncio.to_thread(receiver.wait, 1)
        assert json.loads(only.body)["session"]["id"] == id


async def test_what_fails_is_tried_again_and_given_up_with_the_reason(tmp_path: Path, receiver: Receiver) -> None:
    receiver.statuses, receiver.said = [503], b"not today " * 100
    clock = timedelta(0)

    def later() -> datetime:
        return datetime.now(UTC) + clock

    async with serving(tmp_path, platforms=SOON) as service:
        hook, _ = await service.notices.hooks.add_hook(ME, receiver.url, events=["ended"])
        await run_one(service)
        first = await told(service)
        assert first.answer.startswith("503 Service Unavailable: not today")
        assert len(first.answer) <= 200
        set_clock(service, later)
        for tries in range(2, TRIES + 1):
            clock += timedelta(hours=9)
            await told(service, tries)
        given_up = await given_up_for(service)
        assert (await told(service)).due is None
        assert given_up.startswith(f"{TRIES} tries failed, the last so: 503")
        keys = {one.headers["sublet-delivery"] for one in receiver.calls}
        assert (len(receiver.calls), len(keys)) == (TRIES, 1)
        with pytest.raises(NotTold):
            await service.notices.hooks.test_hook(ME, hook.id)
        receiver.statuses = [204]
        assert await service.notices.hooks.test_hook(ME, hook.id) == "204 No Content"
        assert not (await service.notices.hooks.hooks(ME))[0][0].trouble


async def test_who_says_gone_is_told_no_more_and_redirections_are_not_followed(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.statuses, receiver.location = [307, 410], receiver.url
    async with serving(tmp_path, platforms=SOON) as service:
        hook, _ = await service.notices.hooks.add_hook(ME, receiver.url, events=["ended"])
        with pytest.raises(NotTold, match="not followed"):
            await service.notices.hooks.test_hook(ME, hook.id)
        await run_one(service)
        assert (await given_up_for(service)).startswith("it wants no more: 410")
        assert len(receiver.calls) == 2


@pytest.mark.parametrize("point", HOOK_POINTS)
async def test_a_service_that_dies_there_tells_it_after_all(tmp_path: Path, receiver: Receiver, point: str) -> None:
    environment = {**os.environ, "SUBLET_CRASH_AT": point}
    died = typed([str(tmp_path), receiver.url], environment, program="tests.contract.hook_teller")
    assert died.returncode == -signal.SIGKILL, died.stderr
    before = len(receiver.calls)
    assert before == (1 if point == "hook.sent" else 0)
    async with serving(tmp_path, platforms=SOON) as service:
        set_clock(service, lambda: datetime.now(UTC) + timedelta(minutes=1))
        await told(service, 1 if point == "hook.spread" else 2)
        assert len(receiver.calls) == before + 1
        assert len({one.headers["sublet-delivery"] for one in receiver.calls}) == 1


async def test_a_gateway_calls_public_addresses_by_https_alone(tmp_path: Path, receiver: Receiver) -> None:
    key = tmp_path / "master"
    async with serving(tmp_path / "home", mode="gateway", master_key=str(key)) as service:
        for address in (receiver.url, "ftp://example.org", "https://me:secret@example.org/"):
            with pytest.raises(BadHook):
                await service.notices.hooks.add_hook(ME, address)
        with pytest.raises(BadHook, match="your own address"):
            await service.notices.hooks.add_hook(ME, "mailto:everyone@example.org")
    patience = timedelta(seconds=5)
    for host in ("127.0.0.1", "localhost", "[::1]", "10.0.0.1", "169.254.169.254", "[::ffff:127.0.0.1]", "0.0.0.0"):
        port = receiver.url.rsplit(":", 1)[1].partition("/")[0]
        answer = await call(f"http://{host}:{port}/told", {}, b"", private=False, patience=patience)
        assert not answer.well
        assert "not a public address" in answer.words
    assert receiver.calls == []


async def test_hooks_are_few_end_by_themselves_and_are_not_for_guests(tmp_path: Path, receiver: Receiver) -> None:
    async with serving(tmp_path, platforms=SOON, hooks={"most": 1, "longest": "40d"}) as service:
        with pytest.raises(BadRequest, match="40 days"):
            await service.notices.hooks.add_hook(ME, receiver.url, lasts=timedelta(days=41))
        with pytest.raises(BadHook):
            await service.notices.hooks.add_hook(Person("guest", guest=True), receiver.url)
        hook, _ = await service.notices.hooks.add_hook(ME, receiver.url)
        assert hook.expires - hook.created == timedelta(days=30)
        with pytest.raises(TooManyHooks):
            await service.notices.hooks.add_hook(ME, receiver.url)
        for _ in range(service.settings.throttle.hook_tests_per_person.most):
            await service.notices.hooks.test_hook(ME, hook.id)
        with pytest.raises(TooMany):  # a test calls someone: nobody is made to call them all day
            await service.notices.hooks.test_hook(ME, hook.id)


async def test_mail_goes_to_ones_own_address_while_it_is_and_not_to_who_is_blocked(tmp_path: Path) -> None:
    boss, anna = Person("boss", operator=True), Person("anna@example.org")
    other = "anna@elsewhere.example"
    with running_smtp() as mailbox:
        async with serving(tmp_path, mode="gateway", mail=mailbox.settings) as service:
            await service.people.directory.add_person(boss, anna.name)
            await service.people.directory.add_identity(boss, anna.name, "email", other)
            with pytest.raises(BadHook, match="your own address"):
                await service.notices.hooks.add_hook(anna, "mailto:everyone@example.org")
            hook, secret = await service.notices.hooks.add_hook(anna, "mailto:Anna@example.org", events=["failed"])
            await service.notices.hooks.add_hook(anna, f"mailto:{other}", events=["failed"])
            assert (hook.address, hook.secret, secret) == ("mailto:anna@example.org", "", "")

            async def fails(session: str) -> None:
                await service.store.write(
                    lambda tx: tx.events.add(service.now(), session, anna.name, "session.failed", "", "FAILED")
                )
                await service.signals.announce()

            await fails("11111111-aaaa")
            letter = await asyncio.to_thread(mailbox.wait_for, anna.name)
            await asyncio.to_thread(mailbox.wait_for, other)
            assert letter["Subject"] == "[sublet] 11111111: failed"
            assert f"sublet notify remove {hook.id[:8]}" in letter.get_content()
            await service.people.directory.remove_identity(boss, anna.name, "email", other)
            await fails("22222222-aaaa")
            await asyncio.to_thread(mailbox.wait_for, anna.name, 2)
            await service.people.directory.block(boss, anna.name, "left")
            await fails("33333333-aaaa")
            async with asyncio.timeout(30):
                while "may not come in" not in str([some for _, some in await service.notices.hooks.hooks(anna)]):
                    await service.signals.wait(0.05)
            assert "no longer its owner's" in str([some for _, some in await service.notices.hooks.hooks(anna)])
            assert (len(mailbox.to(anna.name)), len(mailbox.to(other))) == (2, 1)
