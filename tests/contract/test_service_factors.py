"""A second factor: half a token until its code is shown, each code once, few tries, and a way back in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pyotp
import pytest

from sublet.app import open_service
from sublet.kernel import master_key
from sublet.kernel.errors import (
    AlreadyThere,
    BadSettings,
    FactorNeeded,
    NotAllowed,
    NotFound,
    OperatorsOnly,
    SubletError,
    TooMany,
    WrongCode,
)
from sublet.kernel.settings import Settings
from sublet.kernel.settings_tables import SigningSettings
from sublet.people.model.person import Person
from sublet.people.tokens import Token
from sublet.service import Service
from tests.clocks import StillClock
from tests.contract.services import change_settings
from tests.contract.stored import rows

pytestmark = pytest.mark.anyio
ROOT = Person("root", operator=True)
ANN, BOB = Person("ann@example.org"), Person("bob@example.org")
STEP = timedelta(seconds=30)


@dataclass
class Gateway:
    """A gateway, and its clock."""

    service: Service
    clock: StillClock
    secret: str = ""

    def code(self, later: timedelta = timedelta()) -> str:
        """What the authenticator shows."""
        return pyotp.TOTP(self.secret).at(self.clock.time + later)

    async def enrols(self, person: Person = ANN) -> tuple[str, ...]:
        begun = await self.service.people.factors.begin_factor(person)
        self.secret = begun.secret
        assert begun.uri.startswith("otpauth://totp/")
        codes = await self.service.people.factors.confirm_factor(person, self.code())
        self.clock.time += STEP
        return codes

    async def comes(self, use: str = "api", name: str = ANN.name) -> tuple[Token, str]:
        """Someone whose first factor was right."""
        service, now = self.service, self.clock()
        return await service.store.write(
            lambda tx: service.people.signing_in.sign_in_tokens.issue(tx, name, now, "192.0.2.1", "laptop", use, "code")
        )


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    clock, key = StillClock(), tmp_path / "keys" / "master"
    key.parent.mkdir(mode=0o700)
    master_key.make(str(key))
    values = {"mode": "gateway", "master_key": str(key), "platforms": {"trial": {"kind": "memory"}}}
    async with open_service(Settings.load(tmp_path / "home", **values), now=clock, loop=False) as service:
        for person in (ANN, BOB):
            await service.people.directory.add_person(ROOT, person.name)
        yield Gateway(service, clock)


async def test_half_a_token_is_nobodys_until_a_code_makes_it_whole(gateway: Gateway) -> None:
    service = gateway.service
    whole, secret = await gateway.comes()
    assert whole.use == "api"
    await gateway.enrols()
    assert await service.people.tokens.bearer(secret)  # what was there before stays
    half, half_secret = await gateway.comes()
    assert half.use == "half-api"
    assert await service.people.tokens.bearer(half_secret) is None
    assert await service.people.signing_in.visit(half.id) is None
    with pytest.raises(WrongCode):
        await service.people.factors.second(half_secret, "000000")
    made, new = await service.people.factors.second(half_secret, gateway.code())
    assert (made.person, made.use, made.name) == (ANN.name, "api", "laptop")
    assert await service.people.tokens.bearer(new)
    with pytest.raises(WrongCode):  # half of it is used up
        await service.people.factors.second(half_secret, gateway.code(STEP))
    with pytest.raises(WrongCode):  # a whole one is no half
        await service.people.factors.second(new, gateway.code(STEP))
    assert (await gateway.comes(name=BOB.name))[0].use == "api"


async def test_each_code_counts_once_even_if_it_is_shown_twice_at_the_same_time(gateway: Gateway) -> None:
    await gateway.enrols()
    halves = [await gateway.comes("browser") for _ in range(2)]
    tried = await asyncio.gather(
        *(gateway.service.people.factors.second(secret, gateway.code()) for _, secret in halves), return_exceptions=True
    )
    assert sorted(type(one).__name__ for one in tried) == ["WrongCode", "tuple"]
    _, later = await gateway.comes()
    with pytest.raises(WrongCode):  # replayed, in its own half minute
        await gateway.service.people.factors.second(later, gateway.code())
    with pytest.raises(WrongCode):  # one before it, which was not used
        await gateway.service.people.factors.second(later, gateway.code(-STEP))
    assert (await gateway.service.people.factors.second(later, gateway.code(STEP)))[0].use == "api"


async def test_half_a_token_and_the_tries_run_out(gateway: Gateway) -> None:
    await gateway.enrols()
    _, secret = await gateway.comes()
    for _ in range(gateway.service.settings.throttle.second_factors_per_person.most):
        with pytest.raises(WrongCode):
            await gateway.service.people.factors.second(secret, "not it")
    _, another = await gateway.comes()
    with pytest.raises(TooMany):  # in whatever process, and with whatever half
        await gateway.service.people.factors.second(another, gateway.code())
    gateway.clock.time += timedelta(minutes=11)
    with pytest.raises(WrongCode):  # both are too old
        await gateway.service.people.factors.second(another, gateway.code())
    _, fresh = await gateway.comes()
    assert await gateway.service.people.factors.second(fresh, gateway.code())


async def test_recovery_codes_count_once_each_and_are_stored_as_hashes(gateway: Gateway, tmp_path: Path) -> None:
    codes = await gateway.enrols()
    assert len(set(codes)) == 8
    stored = str(rows(gateway.service.settings.database_url, "SELECT * FROM factors"))
    assert gateway.secret not in stored
    assert not any(code in stored for code in codes)
    _, half = await gateway.comes()
    assert await gateway.service.people.factors.second(half, f"{codes[0][:5]}-{codes[0][5:].upper()}")
    _, half = await gateway.comes()
    with pytest.raises(WrongCode):
        await gateway.service.people.factors.second(half, codes[0])
    assert await gateway.service.people.factors.second(half, codes[1])


async def test_it_counts_once_confirmed_and_goes_with_a_code_or_by_an_operator(gateway: Gateway) -> None:
    service = gateway.service
    await service.people.factors.begin_factor(ANN)
    assert (await gateway.comes())[0].use == "api"
    with pytest.raises(WrongCode):
        await service.people.factors.confirm_factor(ANN, "123456")
    await gateway.enrols()
    with pytest.raises(AlreadyThere):
        await service.people.factors.begin_factor(ANN)
    with pytest.raises(FactorNeeded):
        await service.people.factors.remove_factor(ANN, "")
    with pytest.raises(WrongCode):
        await service.people.factors.remove_factor(ANN, "000000")
    with pytest.raises(OperatorsOnly):
        await service.people.factors.reset_factor(BOB, ANN.name)
    with pytest.raises(FactorNeeded):
        await service.people.factors.reset_factor(Person(ANN.name, operator=True), ANN.name)
    await service.people.factors.remove_factor(ANN, gateway.code())
    assert await service.people.factors.factor(ANN) is None
    await gateway.enrols()
    await service.people.factors.reset_factor(ROOT, ANN.name)
    assert (await gateway.comes())[0].use == "api"
    with pytest.raises(NotFound):
        await service.people.factors.reset_factor(ROOT, ANN.name)
    acts = [entry.action for entry in await service.store.read(lambda tx: tx.audit.list(action="factor."))]
    assert acts == ["factor.on", "factor.off", "factor.on", "factor.off"]
    await gateway.enrols()
    await service.people.directory.remove_person(ROOT, ANN.name)


async def test_a_part_that_needs_a_second_factor_counts_only_with_one(gateway: Gateway) -> None:
    service = gateway.service
    signing = SigningSettings(second_factor=("operator",))
    change_settings(service, signing=signing)
    await service.people.directory.set_role(ROOT, ANN.name, "operator")
    await service.people.directory.set_role(ROOT, BOB.name, "reviewer")
    _, secret = await gateway.comes()
    _, bobs = await gateway.comes(name=BOB.name)
    person, bob = await service.people.tokens.bearer(secret), await service.people.tokens.bearer(bobs)
    assert person is not None
    assert (person.operator, person.pending_role) == (False, "operator")
    assert bob is not None
    assert (bob.reviewer, bob.pending_role) == (True, "")
    await gateway.enrols()
    person = await service.people.tokens.bearer(secret)
    assert person is not None
    assert (person.operator, person.pending_role) == (True, "")


async def test_secrets_are_sealed_anew_with_a_new_master_key(gateway: Gateway) -> None:
    await gateway.enrols()
    before = rows(gateway.service.settings.database_url, "SELECT secret FROM factors")
    master_key.make(gateway.service.settings.master_key, more=True)
    assert (await gateway.service.access.rekeying.rekey(ROOT))["second factor"] == 1
    assert rows(gateway.service.settings.database_url, "SELECT secret FROM factors") != before
    _, half = await gateway.comes()
    assert await gateway.service.people.factors.second(half, gateway.code())


async def test_a_personal_service_has_none(tmp_path: Path) -> None:
    async with open_service(Settings.load(tmp_path / "home"), loop=False) as service:
        with pytest.raises(SubletError):
            await service.people.factors.begin_factor(ANN)


async def test_a_gateway_whose_settings_are_gone_is_not_taken_for_a_personal_service(tmp_path: Path) -> None:
    async with open_service(Settings.load(tmp_path, mode="gateway"), loop=False) as service:
        await service.people.directory.add_person(ROOT, ANN.name)
    with pytest.raises(BadSettings, match="has the people of a gateway"):
        async with open_service(Settings.load(tmp_path), loop=False):
            pass
    async with open_service(Settings.load(tmp_path, mode="personal"), loop=False):
        pass  # who says so means it


async def test_no_operator_locks_themselves_out(gateway: Gateway) -> None:
    directory, ann = gateway.service.people.directory, Person(ANN.name, operator=True)
    await directory.set_role(ROOT, ANN.name, "operator")
    for act in (directory.block, directory.remove_person):
        with pytest.raises(NotAllowed, match=r"You can't (block|remove) yourself"):
            await act(ann, ANN.name)
    with pytest.raises(NotAllowed, match="take your own part away"):
        await directory.set_role(ann, ANN.name, "person")
    await directory.set_role(ann, ANN.name, "operator")
    await directory.block(ROOT, ANN.name)
