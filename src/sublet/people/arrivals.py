"""People who sign in by an issuer or provider: which known person that is, or the new one they become."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase

from sublet.kernel.authority import Authority
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import BadAddress
from sublet.kernel.settings import Settings
from sublet.people.model.claims import Confirmed, read_groups
from sublet.people.model.mailboxes import fold_address
from sublet.people.model.people import Identity, Known, Role
from sublet.people.same_mailbox import add_name
from sublet.people.signing_in import SigningIn
from sublet.store.tx import Tx


@dataclass
class Arrivals:
    """Maps all identities of a human to one person, as far as the settings let issuers vouch for them."""

    settings: Settings
    authority: Authority
    signing_in: SigningIn

    def find_address(self, came: Confirmed, patterns: Collection[str]) -> str:
        """Return the verified address, if its issuer may vouch for it; otherwise an empty string."""
        try:
            address = self.authority.check_address(came.address) if came.address else ""
        except BadAddress:
            return ""
        folding = self.settings.signing.subaddresses
        plain = [fold_address(pattern.lower(), folding) for pattern in patterns]
        return address if any(fnmatchcase(address, pattern) for pattern in plain) else ""

    def read_claims(self, came: Confirmed) -> tuple[str, Confirmed]:
        """Read a provider's claims as those of its issuer here: the issuer's name, its realm, and the person's groups.

        If the provider isn't a configured issuer, return the claims unchanged.
        """
        for name, issuer in self.settings.issuers.items():
            if issuer.issuer == came.issuer and not issuer.is_broker:
                subject = came.claims.get(issuer.subject)
                groups = read_groups(came.claims, issuer.groups, issuer.claims)
                own = subject if isinstance(subject, str) and subject else came.subject
                return name, replace(came, subject=own, realm=issuer.realm, groups=groups)
        return "", came

    def find(self, tx: Tx, came: Confirmed, address: str) -> Known | None:
        """Return the person with one of these identities, or with this confirmed address."""
        by_identity = (tx.people.find("oidc", identity) for identity in came.identities)
        known = next((person for person in by_identity if person), None)
        return known or (tx.people.find("email", address) if address else None)

    def welcome(self, tx: Tx, name: str, came: Confirmed, address: str, now: datetime, host: str = "") -> Known | str:
        """Return the person who signed in by this issuer or provider, added if new, or the reason why they may not."""
        known = self.find(tx, came, address)
        if why := self.signing_in.may_sign_in(tx, address or (known.name if known else ""), known):
            return why
        if known is None:
            known = Known(address or _anonymous(name, came), Role.PERSON, now)
            tx.people.add(known)
            if not address:
                tx.people.remove_identity(known.name, "email", known.name)
            detail = {"way": f"oidc {name}"}
            tx.audit.add(AuditEntry(now, known.name, "person.come", "person", known.name, detail, host))
        for identity in came.identities:
            if tx.people.find("oidc", identity) is None:
                tx.people.add_identity(Identity("oidc", identity, known.name, now))
                detail = {"kind": "oidc", "value": identity, "way": "verified address" if address else "first"}
                tx.audit.add(AuditEntry(now, known.name, "identity.add", "person", known.name, detail, host))
        note_confirmed_address(tx, known.name, address, name, now, host)
        return known


def note_confirmed_address(tx: Tx, person: str, address: str, provider: str, now: datetime, host: str) -> None:
    """Add an address that a provider verified to a person, unless it is someone's already."""
    if address and tx.people.find("email", address) is None:
        add_name(tx, Identity("email", address, person, now))
        detail = {"kind": "email", "value": address, "way": f"oidc {provider}"}
        tx.audit.add(AuditEntry(now, person, "identity.add", "person", person, detail, host))


def _anonymous(name: str, came: Confirmed) -> str:
    """Return a name for someone without a verified address, which no rule for addresses can match."""
    return f"{name}:{hashlib.sha256(came.identities[0].encode()).hexdigest()[:16]}"
