"""An annex that is shared: its guests run contained sessions there, nothing else and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sublet.annexes.lease_plans import WantedLease
from sublet.booking.model.phases import OVER, Phase
from sublet.kernel.errors import NotFound, NotInvited, OperatorsOnly
from sublet.people.model.person import Person
from sublet.service import Service
from tests.contract.leases import TWO, leasing, made
from tests.contract.services import ME, ask, in_phase, reach
from tests.contract.test_service_annex_platforms import NAME, look

pytestmark = pytest.mark.anyio
OWNER = Person("me", operator=True)
IMAGE: dict[str, Any] = {"image": "docker.io/library/alpine:3.20"}


async def guest(service: Service, name: str = "bob") -> Person:
    """Someone whom the owner made a token for."""
    _, secret = await service.people.tokens.make_token(OWNER, for_person=name)
    found = await service.people.tokens.bearer(secret)
    assert found
    return found


async def with_annex(service: Service) -> None:
    """An annex that plays."""
    await made(service)
    await look(service)
    service.platforms.by_name[NAME] = service.platforms.by_name["cluster"].model_copy(update={"name": NAME})
    await service.platforms.by_name[NAME].open(service.settings.home)


async def test_guests_run_containers_where_they_are_invited_and_nothing_else(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        await with_annex(service)
        bob = await guest(service)
        assert bob.guest
        refused = await ask(service, bob, **IMAGE)
        assert [reason.message for reason in refused.reasons] == ["Nothing is shared with you here."]
        with pytest.raises(NotFound, match="There is no annex example"):
            await service.sessions.page(bob, annex="example")
        await service.annexes.registry.share("example", "bob", ME)
        assert (await service.sessions.page(bob, annex="example")).items == ()
        command = await ask(service, bob)
        assert [reason.platform for reason in command.reasons] == [NAME], "this machine and its clusters aren't theirs"
        assert "shared with you for containers only" in command.reasons[0].message
        found = await ask(service, bob, **IMAGE)
        assert {session.offer.platform for session in found.offers} == {NAME}
        eve = await guest(service, "eve")
        assert (await ask(service, eve, **IMAGE)).result == "NO"
        mine = await ask(service, bob, **IMAGE, data=[f"file://{tmp_path}/key"])
        assert mine.result == "NO", "a guest has no files here"
        with pytest.raises(OperatorsOnly):
            await service.annexes.leases.lease("theirs", WantedLease(TWO), bob, more=False)
        with pytest.raises(OperatorsOnly):
            await service.annexes.registry.annexes(bob)


async def test_who_is_no_longer_invited_is_refused_at_once_and_loses_what_runs(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        await with_annex(service)
        bob = await guest(service)
        await service.annexes.registry.share("example", "bob", ME)
        running = await ask(service, bob, **IMAGE)
        session = await service.sessions.accept(running.offers[0].id, bob)
        await reach(service, session.id, in_phase(Phase.RUNNING), bob)
        later = await ask(service, bob, **IMAGE)
        await service.annexes.sharing.unshare("example", "bob", ME)
        with pytest.raises(NotInvited):
            await service.sessions.accept(later.offers[0].id, bob)
        assert (await ask(service, bob, **IMAGE)).result == "NO"
        ended = await reach(service, session.id, lambda one: one.phase in OVER, bob)
        assert (ended.phase, ended.cancel_by) == (Phase.CANCELLED, "me")
        _, events = await service.annexes.status.annex_history("example", ME)
        said = [(event.kind, event.detail) for event in events if event.kind.startswith("annex.")]
        assert said == [("annex.shared", "with bob"), ("annex.unshared", "with bob")]


async def test_a_token_that_a_guest_makes_is_a_guests(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        bob = await guest(service)
        _, secret = await service.people.tokens.make_token(bob)
        found = await service.people.tokens.bearer(secret)
        assert found == bob
