"""Pilots, as the service knows them: who may claim a place, how often, and what they are told."""

from __future__ import annotations

import asyncio
import contextlib
import io
import tarfile
from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sublet.annexes.model.annex import Lease
from sublet.annexes.pilots.own import Contact
from sublet.kernel.errors import PilotRefused
from sublet.service import Service
from tests.clocks import set_clock
from tests.contract.leases import KnownPoint, leasing, made
from tests.contract.services import ME

pytestmark = pytest.mark.anyio
FIRST, SECOND = "0" * 32, "1" * 32  # nonces


class PlayedPoint(KnownPoint):
    """An access point in name."""

    kind = "own"
    contact = Contact("192.0.2.7:9618", "sublet@ab.sublet", "me@ab.sublet")

    async def start(self, now: datetime) -> None:
        """It runs."""

    async def pilot_tokens(self, lifetime: timedelta, now: datetime) -> Mapping[str, str]:
        return {"pilot": f"token of {now}"}


class PlayedListener:
    """Listens in name."""

    async def open(self, address: str, port: int, key: Path, certificate: Path) -> int:
        return port or 9718


@contextlib.asynccontextmanager
async def piloting(home: Path) -> AsyncIterator[Service]:
    async with leasing(home) as service:
        service.annexes.access_points.point, service.annexes.pilot_plans.listener = PlayedPoint(), PlayedListener()  # type: ignore[assignment]
        yield service


async def sent(service: Service, name: str = "example") -> tuple[Lease, str]:
    """A lease, and the token that its job carries."""
    lease = await made(service, name)
    found = await service.store.read(lambda tx: tx.leases.get(lease.id))
    assert found is not None
    return found, service.secrets.of(found.session)


def unpacked(answer: bytes) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(answer)) as archive:
        files = [entry for entry in archive if entry.isfile()]
        return {entry.name: archive.extractfile(entry).read().decode("latin-1") for entry in files}  # type: ignore[union-attr]


def value(text: str, name: str) -> str:
    return next(line.partition("=")[2].strip("'") for line in text.splitlines() if line.startswith(f"{name}="))


async def claim(service: Service, lease: str, number: int, token: str, nonce: str = FIRST) -> dict[str, str]:
    told = {"token": token, "nonce": nonce, "node": f"c{number}", "arch": "x86_64", "more": "ignored"}
    return unpacked(await service.annexes.pilots.claim_pilot(lease, number, told))


async def test_each_node_claims_its_place_once_and_only_with_the_leases_own_token(tmp_path: Path) -> None:
    async with piloting(tmp_path) as service:
        lease, token = await sent(service)
        _, other_token = await sent(service, "other")
        for wrong in ("", "x" * 40, other_token):
            with pytest.raises(PilotRefused, match="no such lease"):
                await claim(service, lease.id, 0, wrong)
        with pytest.raises(PilotRefused, match="no such lease"):
            await claim(service, "unknown", 0, token)
        for number in (2, -1):
            with pytest.raises(PilotRefused, match="no node"):
                await claim(service, lease.id, number, token)
        tries = [claim(service, lease.id, 0, token, nonce) for nonce in (FIRST, SECOND)]
        answers = await asyncio.gather(*tries, return_exceptions=True)
        assert sorted(isinstance(answer, dict) for answer in answers) == [False, True]
        await claim(service, lease.id, 1, token)
        found = await service.store.read(lambda tx: tx.pilots.list(lease.id))
        assert [(one.number, one.node) for one in found] == [(0, "c0"), (1, "c1")]
        assert set(found[1].facts) == {"node", "arch", "claim"}


async def test_who_lost_the_answer_may_claim_again_and_gets_the_same_key(tmp_path: Path) -> None:
    async with piloting(tmp_path) as service:
        lease, token = await sent(service)
        first, second = [await claim(service, lease.id, 0, token) for _ in range(2)]
        assert first["passwords.d/POOL"] == second["passwords.d/POOL"]
        secret = value(first["values"], "secret")
        await service.annexes.pilots.end_pilot(lease.id, 0, {"secret": secret, "why": "it was idle"})
        with pytest.raises(PilotRefused, match="claimed already"):
            await claim(service, lease.id, 0, token)


async def test_what_waited_in_a_queue_for_days_gets_tokens_of_the_day_on_which_it_starts(tmp_path: Path) -> None:
    async with piloting(tmp_path) as service:
        lease, token = await sent(service)
        later = service.now() + timedelta(days=3)
        set_clock(service, lambda: later)
        given = await claim(service, lease.id, 0, token)
        assert given["tokens.d/pilot"] == f"token of {later}\n"


async def test_a_pilot_is_told_what_changed_and_nobody_else_is(tmp_path: Path) -> None:
    async with piloting(tmp_path) as service:
        lease, token = await sent(service)
        files = await claim(service, lease.id, 0, token)
        secret, have = value(files["values"], "secret"), files["stamp"].strip()
        told = {"secret": secret, "have": have}
        assert await service.annexes.pilots.renew_pilot(lease.id, 0, told) == b""
        for wrong in ({"secret": token}, {}, {"secret": ""}):
            with pytest.raises(PilotRefused, match="no such lease"):
                await service.annexes.pilots.renew_pilot(lease.id, 0, wrong)
        with pytest.raises(PilotRefused, match="no such lease"):
            await service.annexes.pilots.renew_pilot(lease.id, 1, told)
        await service.annexes.sharing.open_annex("example", ME, wide=True)
        assert (
            "SubletOpen = True" in unpacked(await service.annexes.pilots.renew_pilot(lease.id, 0, told))["annex.conf"]
        )
        await service.sessions.cancel(lease.session, ME)
        with pytest.raises(PilotRefused, match=r"shut down|has ended"):
            await service.annexes.pilots.renew_pilot(lease.id, 0, told)
        with pytest.raises(PilotRefused, match=r"shut down|has ended"):
            await claim(service, lease.id, 1, token)


async def test_a_pilot_that_reaches_the_service_alone_is_split_by_its_own_word_only(tmp_path: Path) -> None:
    async with piloting(tmp_path) as service:
        lease, token = await sent(service)
        secret = value((await claim(service, lease.id, 0, token))["values"], "secret")
        for wrong in ({"secret": token}, {}):
            with pytest.raises(PilotRefused, match="no such lease"):
                await service.annexes.pilots.split_pilot(lease.id, 0, wrong)
        pilot = await service.store.read(lambda tx: tx.pilots.get(lease.id, 0))
        assert pilot is not None
        assert "carry" not in pilot.facts
        await service.annexes.pilots.split_pilot(
            lease.id, 0, {"secret": secret, "why": "the access point can't be reached"}
        )
        split = await service.store.read(lambda tx: tx.pilots.get(lease.id, 0))
        assert split is not None
        assert split.facts == {**pilot.facts, "carry": "spool"}


async def test_a_pilot_says_once_that_it_is_gone_and_why(tmp_path: Path) -> None:
    async with piloting(tmp_path) as service:
        lease, token = await sent(service)
        secret = value((await claim(service, lease.id, 0, token))["values"], "secret")
        for why in ("the access point can't be reached", "later"):
            await service.annexes.pilots.end_pilot(lease.id, 0, {"secret": secret, "why": why})
        (pilot,) = await service.store.read(lambda tx: tx.pilots.list(lease.id))
        assert pilot.ended
        assert pilot.why == "the access point can't be reached"
