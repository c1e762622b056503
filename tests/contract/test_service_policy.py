"""A policy service beside the rules of a gateway: both must allow it, and without an answer nothing is allowed."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.session import OfferSet
from sublet.kernel.errors import NotAllowed
from sublet.people.model.person import Person
from sublet.service import Service
from tests.contract.services import KEEP, OPERATOR, allow, ask, change_settings, serving
from tests.policy_server import policy_server

pytestmark = pytest.mark.anyio
ANNA = Person("anna@x.org")
TRIAL = {"trial": {"kind": "memory", "nodes": 4, "cores": 8, "takes": "1h"}}
GATEWAY: dict[str, Any] = {"mode": "gateway", "platforms": TRIAL, "loop": False}


async def wish(service: Service, **short: Any) -> OfferSet:
    return await ask(service, ANNA, KEEP, run=None, image="docker://busybox", **{"cores": 2, "time": "1h", **short})


def decide(document: dict[str, Any]) -> Any:
    """Two cores for members of the lab, for an hour, and no extension."""
    if "lab" not in document["person"]["groups"]:
        return {}
    if document["action"] == "extend":
        return {"result": {"allow": False, "reason": "Nothing is extended this week."}}
    return {"result": {"allow": True, "limits": {"cores": 2, "seconds": 3600}}}


async def test_both_the_rules_here_and_the_policy_service_must_allow_it(tmp_path: Path) -> None:
    with policy_server(decide) as (url, asked):
        async with serving(tmp_path, policy={"url": url}, **GATEWAY) as service:
            assert "no rule allows it" in (await wish(service)).reasons[0].message
            assert not asked.inputs, "what the rules here refuse is not told to others"
            await allow(service)
            [reason] = (await wish(service)).reasons
            assert (reason.kind, reason.platform) == ("urn:not-allowed", "trial")
            assert reason.message == "You may not use trial: its policy does not decide this."
            await service.people.groups.add_group(OPERATOR, "lab")
            await service.people.groups.join_group(OPERATOR, "lab", ANNA.name)
            assert {offer.offer.shape.cores for offer in (await wish(service, cores="1-8")).offers} <= {1, 2}
            assert not (await wish(service, cores=3)).offers
            session = await service.sessions.accept((await wish(service)).offers[0].id, ANNA)
            with pytest.raises(NotAllowed, match="Nothing is extended this week"):
                await service.sessions.extend(session.id, ANNA, by="10m")
            assert (await service.sessions.get(session.id, ANNA)).until == session.until
            assert asked.actions[-2:] == ["accept", "extend"]
            told = asked.inputs[-1]
            assert told["person"] == {"name": ANNA.name, "names": [ANNA.name], "groups": ["lab"]}
            assert (told["target"], told["request"]["seconds"]) == ({"noun": "system", "name": "trial"}, 4200)


async def test_a_policy_that_changes_after_the_offer_counts_when_it_is_accepted(tmp_path: Path) -> None:
    answers: list[Any] = [{"result": True}]
    with policy_server(lambda _: answers[0]) as (url, _):
        async with serving(tmp_path, policy={"url": url}, **GATEWAY) as service:
            await allow(service)
            first, second, third = [(await wish(service)).offers[0].id for _ in range(3)]
            await service.sessions.accept(first, ANNA)
            answers[0] = {"result": {"allow": True, "limits": {"cores": 1}}}
            with pytest.raises(NotAllowed, match="at most 1 core"):
                await service.sessions.accept(second, ANNA)
            answers[0] = {"result": False}
            with pytest.raises(NotAllowed, match="the policy of this site refuses it"):
                await service.sessions.accept(third, ANNA)
            assert await service.sessions.accept(first, ANNA), "what was accepted stays so"
            audit = [entry.action for entry in await service.store.read(lambda tx: tx.audit.list(limit=50))]
            assert audit.count("accept.refused") == 2


@pytest.mark.parametrize("answer", [b"<html>", {"result": "yes"}, b"[" * 100_000, b" " * (2 << 20)])
async def test_an_answer_that_is_not_understood_is_a_no(tmp_path: Path, answer: Any) -> None:
    with policy_server(lambda _: answer) as (url, _):
        async with serving(tmp_path, policy={"url": url}, **GATEWAY) as service:
            await allow(service)
            assert "did not decide" in (await wish(service)).reasons[0].message


async def test_a_service_that_is_late_or_gone_lets_nobody_in_and_holds_up_nobody_else(tmp_path: Path) -> None:
    over = threading.Event()
    with policy_server(lambda _: over.wait(20)) as (url, _):
        async with serving(tmp_path, policy={"url": url, "timeout": "0.2s"}, **GATEWAY) as service:
            await allow(service)
            [reason] = (await wish(service)).reasons
            over.set()
            assert "did not decide" in reason.message
            assert reason.nearest.startswith("try again")
    async with serving(tmp_path / "other", policy={"url": url}, **GATEWAY) as service:
        await allow(service)
        assert "did not decide" in (await wish(service)).reasons[0].message
        change_settings(service, policy=service.settings.policy.model_copy(update={"url": ""}))
        assert (await wish(service)).offers


async def test_its_token_is_read_from_a_file_that_nobody_else_reads(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.touch(mode=0o600)
    file.write_text("s3cret\n")
    with policy_server(lambda _: {"result": True}) as (url, asked):
        async with serving(tmp_path / "home", policy={"url": url, "token_file": str(file)}, **GATEWAY) as service:
            await allow(service)
            assert (await wish(service)).offers
            assert asked.tokens == ["Bearer s3cret"]
            file.chmod(0o644)
            assert not (await wish(service)).offers
            assert len(asked.tokens) == 1
