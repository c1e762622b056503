"""Runs an app by name or repository: its schema completes the parameters, then it is requested like anything else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sublet.access.quotas import Quotas
from sublet.apps.catalogue import AppCatalogue
from sublet.apps.maintainers import Maintainers
from sublet.apps.model.app import Version, VersionState, find_revoked
from sublet.apps.model.parameters import read as read_word
from sublet.apps.model.repository import plain_address, read_address
from sublet.apps.pinning import KIND, PinnedApps
from sublet.apps.run_requests import AppWish, document_of
from sublet.booking.asked import DirectKey
from sublet.booking.asking import Asking
from sublet.booking.candidates import Candidates
from sublet.booking.direct import Direct
from sublet.booking.model.giving_way import USUAL, Precedence
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Executable
from sublet.booking.model.session import OfferSet, Session
from sublet.booking.platforms.known import KnownPlatforms
from sublet.kernel.errors import Ambiguous, AppRevoked, NoOffers, NotFound, NotReviewed
from sublet.people.model.person import Person
from sublet.people.tokens import Tokens

LIST = "`sublet app list` lists the apps that you may run."


@dataclass(frozen=True, slots=True)
class Places:
    """Where a person can run a version of an app, and why not elsewhere."""

    names: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()


@dataclass
class AppRuns:
    """Requests and starts apps."""

    platforms: KnownPlatforms
    quotas: Quotas
    apps: PinnedApps
    tokens: Tokens
    catalogue: AppCatalogue
    maintainers: Maintainers
    candidates: Candidates
    asking: Asking
    direct: Direct

    async def places(self, person: Person, version: Version) -> Places:
        """Return the platforms that this person may use and that the app supports, and why not others."""
        if reason := await self.quotas.find_refusal(person, KIND, version.app):
            return Places(reasons=(reason,))
        executable = Executable(KIND, version.app, {"app": version.app, "pinned": version.pinned})
        names, reasons = [], []
        for name in await self.candidates.open_to(person):
            reason = self.apps.find_bar(name, executable) or await self.quotas.find_refusal(
                person, self.platforms.noun_of(name), name
            )
            if reason:
                reasons.append(reason)
            else:
                names.append(name)
        return Places(tuple(names), tuple(reasons))

    async def ask_app(
        self, person: Person, wish: AppWish, precedence: Precedence = USUAL, *, key: str | None = None
    ) -> OfferSet:
        """Request offers for an app, with these parameters, data and resources."""
        version = await self.runnable(person, wish)
        manifest = version.as_manifest()
        typed = {name: read_word(manifest.parameter(name), word) for name, word in wish.words.items()}
        parameters = {**typed, **wish.set}
        document = document_of(wish, version.app, version.number, parameters)
        asked = await self.asking.read(json.dumps(document).encode(), "application/json", person)
        return await self.asking.ask(person, replace(asked, precedence=precedence), key=key)

    async def start_app(
        self, person: Person, wish: AppWish, host: str = "", *, key: str | None = None
    ) -> tuple[Session, str]:
        """Request an app, accept the best offer, and make a token for its session only."""
        found = await self.ask_app(person, wish, Precedence(firm=True), key=key and DirectKey(key))
        if not found.offers:
            raise no_offers(found.reasons)
        session = await self.direct.accept_best(found, person)
        _, secret = await self.tokens.make_session_token(person, session.id, host=host)
        return session, secret

    async def runnable(self, person: Person, wish: AppWish) -> Version:
        """Return the approved version that is meant, if this person may run it."""
        if wish.app:
            state = await self.catalogue.app(wish.app, person)
            for version in state.versions:
                if version.state is VersionState.APPROVED and wish.version in ("", str(version.number)):
                    if not self.maintainers.is_approved_for(wish.maintainer, version):
                        raise NotFound(
                            f"{version.name} was not approved for the maintainer {wish.maintainer}.", hint=LIST
                        )
                    return version
            number = int(wish.version) if wish.version.isdecimal() else None
            if gone := await self.catalogue.find_revocation(await self.catalogue.app_state(wish.app), person, number):
                raise gone
            raise NotFound(f"{wish.app} has no approved version {wish.version}".rstrip() + ".", hint=LIST)
        address = plain_address(read_address(wish.repository).text)
        states = await self.catalogue.apps(person)
        current = [state.current for state in states]
        found = [
            each
            for each in current
            if each
            and plain_address(each.repository) == address
            and self.maintainers.is_approved_for(wish.maintainer, each)
        ]
        if len(found) > 1:
            names = ", ".join(each.app for each in found)
            raise Ambiguous(f"Several apps come from {wish.repository}: {names}.", hint="Name one of them instead.")
        if not found:
            raise await self._find_revocation(person, address) or NotReviewed(repository=wish.repository)
        return found[0]

    async def _find_revocation(self, person: Person, address: str) -> AppRevoked | None:
        """Return the error that the app of a repository was revoked, or None."""
        for state in await self.catalogue.app_states():
            taken = find_revoked(state.versions)
            if (
                taken
                and plain_address(taken.repository) == address
                and (gone := await self.catalogue.find_revocation(state, person))
            ):
                return gone
        return None


def no_offers(reasons: Sequence[Reason]) -> NoOffers:
    """Return the error for an answer without offers, with every reason."""
    nearest = "; ".join(dict.fromkeys(reason.nearest for reason in reasons if reason.nearest))
    words = " ".join(dict.fromkeys(reason.message for reason in reasons))
    return NoOffers(words, hint=f"What would be possible: {nearest}." if nearest else "", reasons=reasons)
