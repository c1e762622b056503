"""Tokens of an IAM: let in whom they name, as one person however they come, with the groups that they are in there."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from jwcrypto.jwk import JWK

from sublet.booking.model.session import OfferSet
from sublet.kernel.clock import utc_now
from sublet.kernel.errors import Blocked, ProviderUnreachable, TokenRefused
from sublet.people.model.assertion import Errand
from sublet.people.model.person import Person
from sublet.service import Service
from tests.clocks import set_clock
from tests.contract.services import KEEP, OPERATOR, allow, ask, serving
from tests.iam import AUDIENCE, Iam, iam_server, new_key

pytestmark = pytest.mark.anyio
LOOK = Errand("GET", "/v1/whoami")
TRIAL = {"trial": {"kind": "memory", "nodes": 4, "cores": 8, "pledges": {"srcnet": {"cores": 8}}}}


@pytest.fixture(scope="module")
def shared_iam() -> Iterator[Iam]:
    with iam_server() as started:
        yield started


@pytest.fixture
def iam(shared_iam: Iam) -> Iam:
    shared_iam.asked.clear()
    shared_iam.is_down = False
    return shared_iam


def gateway(iam: Iam, **more: Any) -> dict[str, Any]:
    issuers = {"iam": {"issuer": iam.issuer, "audiences": [AUDIENCE], **more}}
    return {"mode": "gateway", "platforms": TRIAL, "issuers": issuers, "loop": False}


async def come(service: Service, token: str) -> Person:
    return await service.people.issuers.bearer(token, LOOK)


async def wish(service: Service, person: Person, **short: Any) -> OfferSet:
    return await ask(service, person, KEEP, run=None, image="docker://busybox", cores=1, **short)


async def test_the_groups_of_a_token_are_read_by_rules_and_pledges_while_it_counts(tmp_path: Path, iam: Iam) -> None:
    async with serving(tmp_path, **gateway(iam, claims=["acr"])) as service:
        await allow(service, "group:iam:/srcnet/uk", noun="pledge", name="srcnet")
        await allow(service, "group:iam:acr=mfa")
        expires = int(time.time()) + 600
        ann = await come(
            service, iam.token(email="Ann+x@x.org", email_verified=True, groups=["/srcnet/uk"], exp=expires)
        )
        assert (ann.name, ann.operator, ann.scope) == ("ann@x.org", False, ())
        assert {tuple(offer.offer.pledge) for offer in (await wish(service, ann)).offers} == {("srcnet",)}
        strong = await come(service, iam.token(groups=["/srcnet/uk"], acr="mfa", exp=expires))
        assert strong.name == ann.name
        assert (await wish(service, ann, pledge="open")).offers
        quiet = await come(service, iam.token(exp=expires + 5))
        assert (await wish(service, quiet, pledge="open")).offers, "a token that says nothing of groups changes none"
        await come(service, iam.token(groups=["/other"], exp=expires))
        assert not (await wish(service, ann)).offers, "a token that names others does"
        await come(service, iam.token(groups=["/srcnet/uk"], exp=expires))
        assert (await wish(service, ann)).offers
        profile = await service.people.directory.profile(OPERATOR, ann.name)
        assert profile.groups == ("iam:/srcnet/uk",)
        set_clock(service, lambda: utc_now() + timedelta(seconds=700))
        assert not (await wish(service, ann)).offers, "what it said counts no longer than itself"


async def test_an_issuer_can_put_nobody_into_a_group_of_this_gateway(tmp_path: Path, iam: Iam) -> None:
    async with serving(tmp_path, **gateway(iam)) as service:
        await service.people.groups.add_group(OPERATOR, "lab")
        await allow(service, "group:lab")
        eve = await come(service, iam.token("u-eve", groups=["lab", "group:lab", "a b", "", 7, "x" * 300]))
        assert not (await wish(service, eve)).offers
        assert (await service.people.directory.profile(OPERATOR, eve.name)).groups == ("iam:group:lab", "iam:lab")


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"aud": "https://other.example.org"}, "for another audience"),
        ({"aud": ["https://other.example.org"]}, "for another audience"),
        ({"aud": None}, "for another audience"),
        ({"exp": int(time.time()) - 120}, "has expired"),
        ({"exp": None}, "does not say when"),
        ({"exp": "never"}, "does not say when"),
        ({"exp": True}, "does not say when"),
        ({"nbf": int(time.time()) + 86_400}, "only later"),
        ({"iat": int(time.time()) + 86_400}, "only later"),
        ({"sub": None}, "names nobody"),
        ({"sub": ["u-ann"]}, "names nobody"),
        ({"iss": "https://evil.example.org"}, "not one that is trusted"),
    ],
)
async def test_a_token_for_others_or_another_time_counts_for_nothing(
    tmp_path: Path, iam: Iam, claims: dict[str, Any], why: str
) -> None:
    async with serving(tmp_path, **gateway(iam)) as service:
        with pytest.raises(TokenRefused, match=why):
            await come(service, iam.token(**claims))
        assert not await service.people.directory.people(OPERATOR)


async def test_clocks_may_differ_by_a_little_and_audiences_may_be_several(tmp_path: Path, iam: Iam) -> None:
    async with serving(tmp_path, **gateway(iam)) as service:
        now = int(time.time())
        assert await come(service, iam.token(exp=now - 30, nbf=now + 30, iat=now + 30, aud=["other", AUDIENCE]))


async def test_only_a_key_of_the_issuer_signs_and_no_algorithm_is_confused_with_another(
    tmp_path: Path, iam: Iam
) -> None:
    async with serving(tmp_path, **gateway(iam)) as service:
        good = iam.token()
        head, body, signature = good.split(".")
        stranger, first = new_key("first"), iam.keys[0]
        public = first.export_to_pem()
        shared = JWK(kty="oct", k=base64.urlsafe_b64encode(public).decode().rstrip("="), kid="first")
        unsigned = base64.urlsafe_b64encode(json.dumps({"alg": "none", "kid": "first"}).encode()).decode().rstrip("=")
        embedded = {"jwk": json.loads(stranger.export_public()), "jku": "http://127.0.0.1:9/keys"}
        forged = [
            iam.token(key=stranger),
            iam.token(key=stranger, header=embedded),
            iam.token(key=shared, header={"alg": "HS256"}),
            f"{unsigned}.{body}.",
            f"{head}.{body}.",
            f"{head}.{body}.{signature[:-8]}AAAAAAAA",
        ]
        for token in forged:
            with pytest.raises(TokenRefused, match=r"keys signed it|can't be read"):
                await come(service, token)
        for broken in ("a.b.c", "..", "a.W10.c", f"{head}.{'A' * 20_000}.c"):
            with pytest.raises(TokenRefused):
                await come(service, broken)
        assert not service.people.issuers.is_token("sublet_secret")
        assert await come(service, good)


async def test_keys_are_rotated_and_an_unknown_key_is_looked_up_but_not_without_end(tmp_path: Path, iam: Iam) -> None:
    async with serving(tmp_path, **gateway(iam)) as service:
        old = iam.token()
        await come(service, old)
        for _ in range(20):
            with pytest.raises(TokenRefused):
                await come(
                    service, iam.token(key=new_key("unknown") if _ == 0 else None, header={"kid": f"unknown-{_}"})
                )
        assert iam.asked.count("/keys") == 1, "who invents keys makes nobody ask"
        iam.rotate("second")
        new = iam.token()
        set_clock(service, lambda: utc_now() + timedelta(seconds=45))
        assert await come(service, new)
        assert iam.asked.count("/keys") == 2
        with pytest.raises(TokenRefused, match="none of its issuer's keys"):
            await come(service, old)


async def test_while_the_issuer_is_down_its_last_keys_count_and_none_are_asked_for_without_end(
    tmp_path: Path, iam: Iam
) -> None:
    async with serving(tmp_path / "one", **gateway(iam)) as service:
        await come(service, iam.token())
        iam.is_down = True
        set_clock(service, lambda: utc_now() + timedelta(hours=2))
        assert await come(service, iam.token(exp=int(time.time()) + 3 * 3600, nbf=None))
        set_clock(service, lambda: utc_now() + timedelta(hours=30))
        with pytest.raises(ProviderUnreachable):
            await come(service, iam.token(exp=int(time.time()) + 40 * 3600))
    iam.asked.clear()
    async with serving(tmp_path / "two", **gateway(iam)) as service:
        for _ in range(10):
            with pytest.raises(ProviderUnreachable):
                await come(service, iam.token())
        assert len(iam.asked) == 1


async def test_one_human_is_one_person_by_address_by_realm_and_by_provider(tmp_path: Path, iam: Iam) -> None:
    settings = gateway(iam, addresses=["*@x.org"], realm="science")
    with iam_server() as other:
        settings["issuers"]["other"] = {
            "issuer": other.issuer,
            "audiences": [AUDIENCE],
            "addresses": [],
            "realm": "science",
        }
        async with serving(tmp_path, **settings) as service:
            ann = await come(service, iam.token(email="ann@x.org", email_verified=True))
            assert (await come(service, other.token("u-ann"))).name == ann.name, "one realm, one subject"
            assert (await come(service, other.token("u-zoe", email="ann@x.org", email_verified=True))).name != ann.name
            assert (await come(service, iam.token("u-2", email="ann@x.org"))).name != ann.name, "not verified"
            assert (await come(service, iam.token("u-3", email="ann+tag@x.org", email_verified=True))).name == ann.name
            kinds = {
                identity.value for identity in (await service.people.directory.profile(OPERATOR, ann.name)).identities
            }
            assert {f"{iam.issuer} u-ann", "science u-ann", f"{other.issuer} u-ann", "ann@x.org"} <= kinds
            await service.people.directory.block(OPERATOR, ann.name, "left")
            for token in (iam.token(), other.token("u-ann")):
                with pytest.raises(Blocked):
                    await come(service, token)


async def test_who_may_not_sign_in_does_not_come_by_a_token_either(tmp_path: Path, iam: Iam) -> None:
    async with serving(tmp_path, signing={"allow": ["*@x.org"]}, **gateway(iam)) as service:
        with pytest.raises(TokenRefused, match="may not sign in"):
            await come(service, iam.token(email="eve@y.org", email_verified=True))
        assert await come(service, iam.token(email="ann@x.org", email_verified=True))


async def test_scopes_of_a_token_bound_what_it_may_do(tmp_path: Path, iam: Iam) -> None:
    scopes = {"compute.read": "read", "compute.create": "run"}
    async with serving(tmp_path, **gateway(iam, scopes=scopes)) as service:
        assert (await come(service, iam.token(scope="openid compute.read"))).scope == ("read",)
        assert (await come(service, iam.token(scope="compute.read compute.create:/x"))).scope == ("read", "run")
        for scope in ("openid", "", None, 7):
            with pytest.raises(TokenRefused, match="none of its scopes"):
                await come(service, iam.token(scope=scope))
