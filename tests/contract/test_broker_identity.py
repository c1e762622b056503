"""One person at all brokers: an aggregator signs for each request who asks, and each site's own rules decide."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.phases import Phase
from sublet.kernel.errors import TokenRefused
from sublet.kernel.settings_trust import IssuerSettings
from sublet.people.model.assertion import Errand
from sublet.people.model.person import Person
from tests.brokers import platforms_of, running_broker
from tests.contract.services import OPERATOR, allow, ask, change_settings, in_phase, reach
from tests.iam import iam_server
from tests.policy_server import json_server

pytestmark = pytest.mark.anyio
ABOVE = "https://aggregator.example.org"
WISH: dict[str, Any] = {"run": None, "image": "docker://busybox", "cores": 1, "time": "1h"}
LOOK = Errand("GET", "/")


async def test_a_person_of_an_iam_gets_at_a_site_what_its_rules_give_their_groups(tmp_path: Path) -> None:
    trial = {"trial": {"kind": "memory", "nodes": 4, "cores": 8, "takes": "1h"}}
    with iam_server() as iam:
        science = {"science": {"issuer": iam.issuer, "audiences": [ABOVE]}}
        async with (
            running_broker(tmp_path / "site", mode="gateway", platforms=trial) as site,
            running_broker(tmp_path / "above", mode="gateway", platforms={}, url=ABOVE, issuers=science) as above,
        ):
            with json_server(above.service.people.assertions.keys()) as keys:
                broker = {"issuer": ABOVE, "jwks": keys, "audiences": [site.url], "is_broker": True}
                known = {
                    "iam": {"issuer": iam.issuer, "audiences": [site.url]},
                    "above": broker | {"speaks_for": ["iam"]},
                }
                change_settings(site.service, issuers={name: IssuerSettings(**each) for name, each in known.items()})
                await above.service.brokers.add(OPERATOR, "cam", site.url)
                await allow(above.service, name="cam")
                await allow(site.service, "group:iam:/srcnet", cores=2)
                tokens = {
                    "ann": iam.token("u-ann", aud=ABOVE, email="ann@x.org", email_verified=True, groups=["/srcnet"]),
                    "eve": iam.token("u-eve", aud=ABOVE, email="eve@x.org", email_verified=True, groups=["/other"]),
                }
                ann, eve = [await above.service.people.issuers.bearer(token, LOOK) for token in tokens.values()]
                offers = await ask(above.service, ann, **WISH)
                assert set(platforms_of(offers)) == {"cam/trial"}, offers.reasons
                assert "no rule allows it" in str((await ask(above.service, eve, **WISH)).reasons)
                assert not (await ask(above.service, ann, **WISH | {"cores": 3})).offers, "the site's limits hold"
                accepted = await above.service.sessions.accept(offers.offers[0].id, ann)
                running = in_phase(Phase.RUNNING, Phase.AVAILABLE)
                await reach(above.service, accepted.id, running, ann)
                there = (await site.service.sessions.page(Person("ann@x.org"))).items
                assert [session.phase for session in there if session.start] == [Phase.RUNNING]
                await above.service.sessions.cancel(accepted.id, ann)
                direct = await site.service.people.issuers.bearer(iam.token("u-ann", aud=site.url), LOOK)
                assert direct.name == "ann@x.org", "who comes directly is the same person"


async def test_a_brokers_token_that_was_used_counts_no_more_after_a_restart(tmp_path: Path) -> None:
    change = Errand("POST", "/v1/offersets")
    async with running_broker(tmp_path / "above", mode="gateway", platforms={}, url=ABOVE) as above:
        with json_server(above.service.people.assertions.keys()) as keys:
            broker = IssuerSettings(issuer=ABOVE, jwks=keys, audiences=(ABOVE,), is_broker=True)
            token = await above.service.people.assertions.make("ann@x.org", ABOVE, change)
            async with running_broker(tmp_path / "site", mode="gateway", platforms={}) as site:
                change_settings(site.service, issuers={"above": broker})
                await site.service.people.issuers.bearer(token, change)
            async with running_broker(tmp_path / "site", mode="gateway", platforms={}) as again:
                change_settings(again.service, issuers={"above": broker})
                with pytest.raises(TokenRefused, match="used before"):
                    await again.service.people.issuers.bearer(token, change)


async def test_a_brokers_token_is_for_one_request_to_one_broker_and_changes_something_once(tmp_path: Path) -> None:
    async with (
        running_broker(tmp_path / "site", mode="gateway", platforms={}) as site,
        running_broker(tmp_path / "above", mode="gateway", platforms={}, url=ABOVE) as above,
    ):
        sign, take = above.service.people.assertions, site.service.people.issuers
        with json_server(sign.keys()) as keys:
            broker = IssuerSettings(issuer=ABOVE, jwks=keys, audiences=(site.url,), is_broker=True)
            change_settings(site.service, issuers={"above": broker})
            change, look = Errand("POST", "/v1/offersets"), Errand("GET", "/v1/sessions/1?after=2")
            token = await sign.make("ann@x.org", site.url, change)
            for other in (Errand("DELETE", change.path), Errand("POST", "/v1/sessions"), Errand("POST", ""), look):
                with pytest.raises(TokenRefused, match="another request"):
                    await take.bearer(token, other)
            person = await take.bearer(token, change)
            assert person.name.startswith("above:"), "without `speaks_for` it can't say who else someone is"
            with pytest.raises(TokenRefused, match="used before"):
                await take.bearer(token, change)
            elsewhere = await sign.make("ann@x.org", "https://other.example.org", change)
            with pytest.raises(TokenRefused, match="another audience"):
                await take.bearer(elsewhere, change)
            old = replace(sign, now=lambda: sign.now() - timedelta(minutes=3))
            with pytest.raises(TokenRefused, match="expired"):
                await take.bearer(await old.make("ann@x.org", site.url, change), change)
            early = replace(sign, now=lambda: sign.now() + timedelta(minutes=3))
            with pytest.raises(TokenRefused, match="only later"):
                await take.bearer(await early.make("ann@x.org", site.url, change), change)
            looking = await sign.make("ann@x.org", site.url, look)
            assert (await take.bearer(looking, look)) == (await take.bearer(looking, look)), "to look is no change"
            changed = f"{token[:-4]}AAAA"
            with pytest.raises(TokenRefused, match="signed"):
                await take.bearer(changed, change)
