"""Signing in by an OpenID provider: who begins it ends it, and an identity is whose it was."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from sublet.kernel.errors import NotConfirmed, NotFound, SubletError, WrongCode
from sublet.kernel.settings_tables import SigningSettings
from sublet.kernel.settings_trust import IssuerSettings
from sublet.people.model.person import Person
from sublet.people.tokens import Token
from sublet.service import Service
from tests.contract.services import change_settings, serving
from tests.openid import OpenId, openid

pytestmark = pytest.mark.anyio
BACK = "http://gateway.test/web/sign-in/oidc/campus/back"
ROOT = Person("root", operator=True)


@pytest.fixture(scope="module")
def campus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenId]:
    with openid(tmp_path_factory.mktemp("campus"), BACK) as started:
        yield started


@dataclass
class Gateway:
    """A gateway, and the provider that it trusts."""

    service: Service
    campus: OpenId

    async def comes(self, person: str, **wish: str) -> tuple[str, dict[str, str]]:
        """Someone who signed in at the provider: what their browser kept, and what it brings back."""
        address, kept = await self.service.people.oidc.begin_oidc("campus", BACK, **wish)
        return kept, dict(parse_qsl(urlsplit(self.campus.sign_in(address, person)).query))

    async def enters(self, person: str, **wish: str) -> tuple[Token | None, str]:
        kept, said = await self.comes(person, **wish)
        _, token, secret = await self.service.people.oidc.end_oidc(kept, "campus", BACK, said, "192.0.2.1")
        return token, secret

    async def identities(self, name: str) -> dict[str, str]:
        found = await self.service.store.read(lambda tx: tx.people.identities(name))
        return {one.kind: one.value for one in found}

    async def refused(self) -> list[str]:
        entries = await self.service.store.read(lambda tx: tx.audit.list(action="sign-in.refused"))
        return [str(entry.detail["why"]) for entry in entries]


@pytest.fixture
async def gateway(tmp_path: Path, campus: OpenId) -> AsyncIterator[Gateway]:
    settings = {"mode": "gateway", "oidc": {"campus": campus.settings(title="the campus")}}
    async with serving(tmp_path / "home", loop=False, **settings) as service:
        yield Gateway(service, campus)


async def test_a_provider_that_is_an_issuer_too_tells_the_groups_of_who_signs_in(gateway: Gateway) -> None:
    issuer = IssuerSettings(issuer=gateway.campus.issuer, audiences=("x",), realm="science")
    change_settings(gateway.service, issuers={"iam": issuer})
    token, _ = await gateway.enters("ann")
    assert token is not None
    profile = await gateway.service.people.directory.profile(ROOT, token.person)
    assert profile.groups == ("iam:/srcnet", "iam:/srcnet/uk")
    assert "science u-ann" in {identity.value for identity in profile.identities}
    other, _ = await gateway.enters("gus")
    assert other is not None
    assert (await gateway.service.people.directory.profile(ROOT, other.person)).groups == ()


async def test_a_verified_address_is_the_person_and_the_identity_stays_theirs(gateway: Gateway) -> None:
    assert gateway.service.people.oidc.providers == {"campus": "the campus"}
    await gateway.service.people.directory.add_person(ROOT, "ann@illinois.edu", "reviewer")
    token, _ = await gateway.enters("ann")
    assert token is not None
    assert (token.person, token.use) == ("ann@illinois.edu", "browser")
    visitor = await gateway.service.people.signing_in.visit(token.id)
    assert visitor is not None
    assert visitor.reviewer
    identity = f"{gateway.campus.issuer} u-ann"
    assert await gateway.identities("ann@illinois.edu") == {"email": "ann@illinois.edu", "oidc": identity}
    again, _ = await gateway.enters("ann")
    assert again is not None
    assert again.person == token.person
    come, _ = await gateway.enters("zoe")
    assert come is not None
    assert come.person == "zoe@elsewhere.example"


@pytest.mark.parametrize(("one", "address"), [("zoe", "zoe@elsewhere.example"), ("gus", "gus@gmail.com")])
async def test_a_verified_address_of_the_same_mailbox_is_the_same_person_and_as_blocked(
    gateway: Gateway, one: str, address: str
) -> None:
    first, _ = await gateway.enters(one)
    second, _ = await gateway.enters(f"{one}2")
    assert first is not None
    assert second is not None
    assert second.person == first.person == address
    await gateway.service.people.directory.block(ROOT, first.person)
    with pytest.raises(NotConfirmed, match="blocked"):
        await gateway.enters(f"{one}2")


async def test_an_unverified_address_gives_nobodys_rights(gateway: Gateway) -> None:
    await gateway.service.people.directory.add_person(ROOT, "ann@illinois.edu", "operator")
    token, _ = await gateway.enters("eve")
    assert token is not None
    assert token.person.startswith("campus:")
    assert "@" not in token.person
    assert await gateway.identities(token.person) == {"oidc": f"{gateway.campus.issuer} u-eve"}
    visitor = await gateway.service.people.signing_in.visit(token.id)
    assert visitor is not None
    assert not visitor.operator
    assert (await gateway.service.people.directory.profile(ROOT, token.person)).known.name == token.person
    service = gateway.service
    change_settings(service, signing=SigningSettings(allow=("*@illinois.edu",)))
    with pytest.raises(NotConfirmed, match="not allowed"):
        await gateway.enters("eve")
    assert (await gateway.enters("ann"))[0] is not None


async def test_a_provider_speaks_only_for_its_addresses(gateway: Gateway) -> None:
    narrow = gateway.service.settings.oidc["campus"].model_copy(update={"addresses": ("*@elsewhere.example",)})
    change_settings(gateway.service, oidc={"campus": narrow})
    token, _ = await gateway.enters("ann")
    assert token is not None
    assert token.person.startswith("campus:")


async def test_who_did_not_begin_it_is_not_let_in(gateway: Gateway) -> None:
    service = gateway.service
    kept, said = await gateway.comes("ann")
    other, _ = await gateway.comes("zoe")
    attacks = (
        ("", said, "did not begin it"),  # another browser: the address was sent to someone
        (kept[:-1] + ("0" if kept[-1] != "0" else "1"), said, "did not begin it"),
        (other, said, "another sign-in"),  # somebody else's answer
        (kept, said | {"state": "guessed"}, "another sign-in"),
        (kept, {"code": said["code"]}, "another sign-in"),
        (kept, said | {"iss": "https://evil.example"}, "another issuer"),
        (kept, {"state": said["state"], "error": "access_denied"}, "access_denied"),
    )
    for keeps, brings, why in attacks:
        with pytest.raises(NotConfirmed, match=why):
            await service.people.oidc.end_oidc(keeps, "campus", BACK, brings, "192.0.2.7")
    assert (await service.people.oidc.end_oidc(kept, "campus", BACK, said))[1] is not None
    with pytest.raises(NotConfirmed, match="invalid_grant"):  # the same once more
        await service.people.oidc.end_oidc(kept, "campus", BACK, said)
    assert len(await gateway.refused()) == len(attacks) + 1
    with pytest.raises(NotFound, match="nowhere"):
        await service.people.oidc.begin_oidc("nowhere", BACK)


async def test_a_blocked_person_comes_in_no_way(gateway: Gateway) -> None:
    await gateway.enters("ann")
    await gateway.service.people.directory.block(ROOT, "ann@illinois.edu", "left")
    with pytest.raises(NotConfirmed, match="blocked"):
        await gateway.enters("ann")


async def test_one_adds_an_identity_by_ones_own_act_and_never_anothers(gateway: Gateway) -> None:
    await gateway.service.people.directory.add_person(ROOT, "ann@illinois.edu")
    await gateway.service.people.directory.add_person(ROOT, "ann@home.example")
    assert await gateway.enters("eve", link="ann@home.example") == (None, "")
    token, _ = await gateway.enters("eve")
    assert token is not None
    assert token.person == "ann@home.example"
    with pytest.raises(NotConfirmed, match="someone else's"):
        await gateway.enters("eve", link="ann@illinois.edu")
    assert (await gateway.identities("ann@home.example"))["email"] == "ann@home.example", "eve's was not verified"


async def test_rules_know_whoever_adds_an_identity_by_its_verified_address(gateway: Gateway) -> None:
    for name in ("zed@home.example", "ann@illinois.edu"):
        await gateway.service.people.directory.add_person(ROOT, name)
    await gateway.enters("zoe", link="zed@home.example")
    found = await gateway.service.people.names.names_of(Person("zed@home.example"))
    assert set(found) == {"zed@home.example", "zoe@elsewhere.example"}
    await gateway.enters("ann", link="zed@home.example")
    found = await gateway.service.people.names.names_of(Person("zed@home.example"))
    assert "ann@illinois.edu" not in found, "it is the name of someone else"


async def test_a_terminal_gets_a_token_for_a_code_that_only_it_can_use(gateway: Gateway) -> None:
    service = gateway.service
    challenge = hashlib.sha256(b"kept by the terminal").hexdigest()
    token, code = await gateway.enters("ann", challenge=challenge)
    assert token is not None
    assert token.use == "once"
    assert await service.people.tokens.bearer(code) is None
    stolen, other = await gateway.enters("ann", challenge=challenge)
    with pytest.raises(WrongCode):
        await service.people.oidc.sign_in_once(other, "another terminal")
    with pytest.raises(WrongCode):  # and that used it up
        await service.people.oidc.sign_in_once(other, "kept by the terminal")
    made, secret = await service.people.oidc.sign_in_once(f" {code}\n", "kept by the terminal", "192.0.2.1", "laptop")
    assert (made.person, made.use, made.name) == ("ann@illinois.edu", "api", "laptop")
    holder = await service.people.tokens.bearer(secret)
    assert holder is not None
    assert holder.name == "ann@illinois.edu"
    with pytest.raises(WrongCode):
        await service.people.oidc.sign_in_once(code, "kept by the terminal")
    assert stolen is not None


async def test_a_personal_service_has_no_such_ways_in(tmp_path: Path, campus: OpenId) -> None:
    async with serving(tmp_path / "home", loop=False, oidc={"campus": campus.settings()}) as service:
        assert not service.people.oidc.providers
        with pytest.raises(SubletError):
            await service.people.oidc.begin_oidc("campus", BACK)
