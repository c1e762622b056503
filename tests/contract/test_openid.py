"""What an OpenID provider says is believed only if it is from there, for us, and for this very sign-in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from sublet.kernel.errors import NotConfirmed, ProviderUnreachable
from sublet.kernel.settings_tables import OidcSettings
from sublet.people.openid import Confirmed, Provider
from tests.clocks import LateClock
from tests.openid import OpenId, openid

pytestmark = pytest.mark.anyio
BACK = "http://gateway.test/web/sign-in/oidc/campus/back"
VERIFIER = "v" * 50


@pytest.fixture(scope="module")
def campus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenId]:
    """A real provider."""
    with openid(tmp_path_factory.mktemp("campus"), BACK) as started:
        yield started


@pytest.fixture
def clock() -> LateClock:
    return LateClock()


@pytest.fixture
def provider(campus: OpenId, clock: LateClock) -> Provider:
    """The same, as the gateway sees it."""
    return Provider("campus", campus.seen(), clock)


async def code(campus: OpenId, provider: Provider, person: str = "ann", state: str = "s1", nonce: str = "n1") -> str:
    """What someone who signed in there comes back with."""
    back = campus.sign_in(await provider.address(BACK, state, nonce, VERIFIER), person)
    assert back.startswith(f"{BACK}?")
    said = parse_qs(urlsplit(back).query)
    assert said["state"] == [state]
    return said["code"][0]


async def test_who_signed_in_there_is_known_by_issuer_and_subject(campus: OpenId, provider: Provider) -> None:
    came = await provider.confirm(await code(campus, provider), BACK, "n1", VERIFIER)
    assert came == Confirmed(campus.issuer, "u-ann", "ann@illinois.edu")
    assert came.identity == f"{campus.issuer} u-ann"


async def test_an_address_that_is_not_verified_counts_for_nothing(campus: OpenId, provider: Provider) -> None:
    came = await provider.confirm(await code(campus, provider, "eve"), BACK, "n1", VERIFIER)
    assert came == Confirmed(campus.issuer, "u-eve", "")


async def test_a_code_counts_once_for_this_sign_in_and_for_who_began_it(campus: OpenId, provider: Provider) -> None:
    first = await code(campus, provider)
    with pytest.raises(NotConfirmed, match="another sign-in"):
        await provider.confirm(first, BACK, "another nonce", VERIFIER)
    with pytest.raises(NotConfirmed, match="invalid_grant"):  # replayed
        await provider.confirm(first, BACK, "n1", VERIFIER)
    with pytest.raises(NotConfirmed, match="invalid_grant"):  # stolen: whoever began it has the verifier
        await provider.confirm(await code(campus, provider), BACK, "n1", "w" * 50)
    secret = campus.secret_file.with_name("wrong-secret")
    secret.touch(mode=0o600)
    secret.write_text("wrong")
    wrong = Provider("campus", campus.seen(client_secret_file=str(secret)), provider.now)
    with pytest.raises(NotConfirmed, match="invalid_client"):
        await wrong.confirm(await code(campus, provider), BACK, "n1", VERIFIER)


async def test_an_id_token_of_another_client_time_or_nonce_is_refused(
    campus: OpenId, provider: Provider, clock: LateClock
) -> None:
    said = await provider._redeem(await provider.keys.discover(), await code(campus, provider), BACK, VERIFIER)
    token = said["id_token"]
    assert (await provider.check(token, "n1"))["sub"] == "u-ann"
    for nonce in ("", "n2"):
        with pytest.raises(NotConfirmed, match="another sign-in"):
            await provider.check(token, nonce)
    with pytest.raises(NotConfirmed, match="another client"):
        await Provider("campus", campus.seen(client_id="another"), clock).check(token, "n1")
    head, body, signature = token.split(".")
    for forged in (f"{head}.{body}.{signature[::-1]}", f"eyJhbGciOiJub25lIn0.{body}.", "", "a.b.c"):
        with pytest.raises(NotConfirmed, match="not signed"):
            await provider.check(forged, "n1")
    clock.later = timedelta(days=2)
    with pytest.raises(NotConfirmed, match="expired"):
        await provider.check(token, "n1")
    clock.later = timedelta(days=-2)
    with pytest.raises(NotConfirmed, match="not of now"):
        await provider.check(token, "n1")


async def test_another_provider_speaks_for_nobody_here(
    campus: OpenId, provider: Provider, clock: LateClock, tmp_path: Path
) -> None:
    with openid(tmp_path / "rogue", BACK) as rogue:
        theirs = Provider("rogue", rogue.seen(), clock)
        said = await theirs._redeem(await theirs.keys.discover(), await code(rogue, theirs), BACK, VERIFIER)
        with pytest.raises(NotConfirmed, match="not signed"):
            await provider.check(said["id_token"], "n1")
        theirs.settings = replace_issuer(rogue, campus.issuer)
        with pytest.raises(NotConfirmed, match="another issuer"):
            await theirs.check(said["id_token"], "n1")
        with pytest.raises(NotConfirmed, match="invalid_grant"):  # a code of one shown to the other
            await provider.confirm(await code(rogue, Provider("r", rogue.seen(), clock)), BACK, "n1", VERIFIER)


def replace_issuer(provider: OpenId, issuer: str) -> OidcSettings:
    return replace(provider, issuer=issuer).seen()


async def test_a_provider_that_calls_itself_otherwise_is_not_the_one(campus: OpenId, clock: LateClock) -> None:
    twisted = replace_issuer(campus, f"{campus.issuer}/")
    with pytest.raises(NotConfirmed, match="it calls itself"):
        await Provider("campus", twisted, clock).address(BACK, "s", "n", VERIFIER)


async def test_a_provider_that_does_not_answer_and_a_secret_for_all_are_told(campus: OpenId, clock: LateClock) -> None:
    away = Provider("away", replace_issuer(campus, "http://127.0.0.1:9/o"), clock)
    with pytest.raises(ProviderUnreachable, match="away can't be asked"):
        await away.address(BACK, "s", "n", VERIFIER)
    open_file = campus.secret_file.with_name("open-secret")
    open_file.write_text("secret of gateway")
    open_file.chmod(0o644)
    careless = Provider("campus", campus.seen(client_secret_file=str(open_file)), clock)
    with pytest.raises(ProviderUnreachable, match="chmod 600"):
        await careless.confirm("code", BACK, "n1", VERIFIER)


@pytest.mark.parametrize(
    "issuer", ["http://login.example.org", "login.example.org", "https://", "https://a/?b", "file:/x"]
)
def test_an_issuer_has_an_https_address(issuer: str) -> None:
    with pytest.raises(ValueError, match="https"):
        OidcSettings(issuer=issuer, client_id="gateway")
