"""An external policy service, asked over HTTP before any transaction; no answer means no."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import httpx2

from sublet.access.model.access import AccessTarget, Decision, lowest
from sublet.access.model.access_words import NOT_ALLOWED, excesses, insist
from sublet.access.model.bounds import Bounds
from sublet.access.model.verdict import (
    Verdict,
    describe_amounts,
    describe_executable,
    describe_person,
    make_input,
    read_verdict,
)
from sublet.access.quotas import who_is
from sublet.booking.model.offer import Offer, Reason
from sublet.booking.model.request import Request
from sublet.booking.model.session import Session
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.ports import OfferLimits
from sublet.kernel.clock import Clock
from sublet.kernel.log import log
from sublet.kernel.secret_file import read_secret_file
from sublet.kernel.settings import Settings
from sublet.kernel.streams import read_up_to
from sublet.kernel.tls import trust_machine
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

MOST_BYTES = 1 << 20
SILENT = "the policy service of this site did not decide"
WAIT = "try again in a moment; an operator sees the cause in the log"


@dataclass
class PolicyService:
    """Asks the policy service whether someone may use a platform."""

    settings: Settings
    store: Store
    now: Clock
    platforms: KnownPlatforms

    @property
    def is_set(self) -> bool:
        """Whether a policy service is configured."""
        return bool(self.settings.policy.url)

    async def judge(self, act: str, person: Person, platform: str, wanted: Mapping[str, Any]) -> Verdict:
        """Return the service's verdict; a failure or timeout counts as a refusal."""
        now = self.now()
        who = await self.store.read(lambda tx: who_is(tx, person.name, now))
        target = self._target(platform)
        document = make_input(act, describe_person(person.name, who), target, wanted, now)
        try:
            return read_verdict(await self._ask(document))
        except TimeoutError:
            why = "no answer in time"
        except (httpx2.HTTPError, OSError, ValueError, RecursionError) as error:
            why = str(error) or type(error).__name__
        log.warning("policy.failed", act=act, platform=platform, why=why)
        return Verdict(False, SILENT, is_decided=False)

    async def _ask(self, document: Mapping[str, Any]) -> object:
        policy = self.settings.policy
        headers = {"content-type": "application/json", "accept": "application/json"}
        if policy.token_file:
            headers["authorization"] = f"Bearer {read_secret_file(policy.token_file)}"
        seconds, body = policy.timeout.total_seconds(), json.dumps({"input": document}).encode()
        async with (
            asyncio.timeout(seconds),
            httpx2.AsyncClient(verify=trust_machine(environment=False), timeout=seconds, trust_env=False) as client,
            client.stream("POST", policy.url, headers=headers, content=body) as answer,
        ):
            if answer.status_code != httpx2.codes.OK:
                raise ValueError(f"it answered with {answer.status_code}")
            content = await read_up_to(MOST_BYTES, answer.aiter_bytes())
            if len(content) > MOST_BYTES:
                raise ValueError("its answer is too long")
        return json.loads(content)

    async def review(self, act: str, person: Person, session: Session, offer: Offer) -> None:
        """Raise NotAllowed unless the policy service lets the session have what this offer says."""
        if not self.is_set:
            return
        owner = Person(session.person)
        request = await self.store.read(lambda tx: _find_request(tx, session))
        verdict = await self.judge(act, owner, offer.platform, describe_offer(offer, request))
        target = self._target(offer.platform)
        bounds = Decision(*target, True, verdict.limits)
        over = next(excesses(bounds, offer.amounts.total, None), None)
        insist(refuse(verdict, offer.platform) or over, target)

    def _target(self, platform: str) -> AccessTarget:
        return self.platforms.noun_of(platform), platform


@dataclass
class PolicedLimits:
    """The limits of the access rules, further restricted by the policy service."""

    rules: OfferLimits
    policy: PolicyService

    async def bounds(self, person: Person, platform: str, request: Request) -> Bounds | Reason:
        """Return the limits for offers of a platform to this person, or the reason why there can be none."""
        local = await self.rules.bounds(person, platform, request)
        if isinstance(local, Reason) or not self.policy.is_set:
            return local
        verdict = await self.policy.judge("ask", person, platform, _describe_wish(request))
        if reason := refuse(verdict, platform):
            return reason
        return replace(local, limits=lowest([local.limits, verdict.limits]))


def refuse(verdict: Verdict, platform: str) -> Reason | None:
    """Return the reason of a policy service's refusal, or None if it allows the use."""
    if verdict.allowed:
        return None
    why = verdict.reason or "the policy of this site refuses it"
    nearest = "another platform, or an operator of this service" if verdict.is_decided else WAIT
    return Reason(NOT_ALLOWED, "platform", f"You may not use {platform}: {why.rstrip('.')}.", platform, nearest=nearest)


def _describe_wish(request: Request) -> dict[str, Any]:
    least = describe_amounts(request.least.total)
    options = {"project": request.scheduler.project, "pledge": request.pledge}
    return {**least, **{key: value for key, value in options.items() if value}, **describe_executable(request)}


def describe_offer(offer: Offer, request: Request | None) -> dict[str, Any]:
    """Describe an offer for the policy service: amounts, time, pledges, project, and costs."""
    options = {"project": offer.scheduler.project, "queue": offer.scheduler.queue}
    costs = {quote.type.rpartition(":")[2]: quote.max for quote in offer.costs}
    return {
        **describe_amounts(offer.amounts.total),
        **{key: value for key, value in options.items() if value},
        "start": offer.start.isoformat(timespec="seconds"),
        "terms": offer.terms.kind,
        "pledges": sorted(offer.pledge),
        "costs": costs,
        **(describe_executable(request) if request else {}),
    }


def _find_request(tx: Tx, session: Session) -> Request | None:
    offerset = tx.offersets.get(session.offerset)
    return offerset.request if offerset else None
