"""A session as a person sees it: with the addresses that they may connect to, and what delays it at present."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sublet.booking.loop.state import LoopState
from sublet.booking.model.phases import ACTIVE, NOT_YET, Phase
from sublet.booking.model.session import Connector, Session
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.session_secrets import SessionSecrets
from sublet.kernel.authority import Authority
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person

COMING = "uri:http"  # what exactly it serves is known once it does
AWAY = "is missing at the moment; it continues when the platform is back. `sublet platform list` lists the platforms"


@dataclass
class Presenter:
    """Adds what only this process knows to a stored session."""

    settings: Settings
    authority: Authority
    platforms: KnownPlatforms
    loop: LoopState
    secrets: SessionSecrets
    base_url: str = ""  # the address of the pages, once TCP listens

    def page(self, path: str) -> str:
        """Return the address of a page, for a link in a mail."""
        return f"{(self.settings.url or self.base_url).rstrip('/')}/web/{path}"

    def with_connectors(self, session: Session, viewer: Person | None = None) -> Session:
        """Return a session as a viewer sees it: with connectors that they may use, and the service's own trouble."""
        if session.offer.interactive and not session.connectors and session.phase in NOT_YET:
            session = replace(session, connectors=(Connector(COMING, "PREPARING", "HTTP", f"/connect/{session.id}/"),))
        if viewer and not self.authority.can_read(session.person, viewer):
            session = replace(session, connectors=())
        if session.connectors:
            session = self._with_addresses(session)
        if session.id in self.loop.staging and session.phase in (Phase.PREPARING, Phase.RELEASING):
            session = replace(session, condition=self.loop.staging[session.id])
        if session.phase in ACTIVE and session.offer.platform not in self.platforms.by_name:
            session = replace(session, condition=f"its platform {session.offer.platform} {AWAY}")
        if self.loop.trouble and session.phase in ACTIVE:
            session = replace(session, condition=f"the service can't work on it at the moment: {self.loop.trouble}")
        return session

    def _with_addresses(self, session: Session) -> Session:
        base = self.settings.sessions_url.replace("{session}", session.id) or self.base_url
        scheme = (base.partition(":")[0] or "http").upper()
        secret = f"?token={self.secrets.of(session.id)}"
        open_or_coming = ("PREPARING", "AVAILABLE")  # until it is ready, visitors are shown what it waits for
        connectors = tuple(
            replace(
                connector,
                protocol=scheme,
                location=f"{base}{connector.location}{secret if connector.status in open_or_coming else ''}",
            )
            for connector in session.connectors
        )
        return replace(session, connectors=connectors)
