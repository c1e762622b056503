"""Tokens for requests to other brokers on behalf of people: each signed for one person, one broker and one request."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sublet.booking.session_secrets import SessionSecrets
from sublet.kernel.clock import Clock
from sublet.kernel.errors import NoAddress
from sublet.kernel.settings import Settings
from sublet.people.model.assertion import Errand, KnownElsewhere, choose_identity, make_claims
from sublet.store.store import Store
from sublet.store.tx import Tx

if TYPE_CHECKING:
    from joserfc.jwk import ECKey

ALGORITHM = "ES256"
PURPOSE = "key of assertions to brokers"
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # the order of P-256


@dataclass
class Assertions:
    """Tells another broker who asks, without giving it anything that could be misused as the person's credential."""

    settings: Settings
    store: Store
    now: Clock
    secrets: SessionSecrets
    knows_people: bool  # whether people sign in here; otherwise there are only the owner and token holders

    @property
    def issuer(self) -> str:
        """The address by which other brokers know this one; raises NoAddress if it isn't configured."""
        if not self.settings.url:
            raise NoAddress
        return self.settings.url.rstrip("/")

    @property
    def can_sign(self) -> bool:
        """Whether this service has people to sign for, and an address that others know."""
        return self.knows_people and bool(self.settings.url)

    async def make(self, person: str, audience: str, errand: Errand) -> str:
        """Make a token for one request to one broker, for this person, valid for a minute."""
        from joserfc import jwt

        mail, identity = await self.store.read(lambda tx: self._find_identity(tx, person))
        id, place = str(uuid4()), audience.rstrip("/")
        claims = make_claims(self.issuer, person, mail, identity, place, errand, id, self.now())
        key = self._key()
        return jwt.encode({"alg": ALGORITHM, "kid": key.kid}, claims, key, algorithms=[ALGORITHM])

    def _find_identity(self, tx: Tx, person: str) -> tuple[str, KnownElsewhere | None]:
        """Return a person's confirmed address, and one of their identities at issuers with its current groups."""
        identities = tx.people.identities(person)
        addresses = [identity.value for identity in identities if identity.kind == "email"]
        groups: dict[str, tuple[str, ...]] = {}
        for name, settings in self.settings.issuers.items():
            names, until = tx.groups.list_confirmed(person, name)
            if until and until > self.now():
                groups[settings.issuer] = tuple(sorted(group.removeprefix(f"{name}:") for group in names))
        mail = person if person in addresses else next(iter(addresses), "")
        values = [identity.value for identity in identities if identity.kind == "oidc"]
        return mail, choose_identity(values, groups)

    def keys(self) -> dict[str, Any]:
        """Return the public keys that verify these tokens, as a JWK set."""
        return {"keys": [{**self._key().as_dict(private=False), "use": "sig", "alg": ALGORITHM}]}

    def metadata(self) -> Mapping[str, Any]:
        """Return this service's metadata as an issuer, by OpenID Connect Discovery."""
        return {
            "issuer": self.issuer,
            "jwks_uri": f"{self.issuer}/.well-known/jwks.json",
            "response_types_supported": [],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        }

    def _key(self) -> ECKey:
        """Derive this home's signing key from its secret, so that all processes have the same key."""
        from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
        from joserfc.jwk import ECKey

        seed = hashlib.sha512(self.secrets.of(PURPOSE).encode()).digest()
        private = derive_private_key(int.from_bytes(seed) % (ORDER - 1) + 1, SECP256R1())
        key = ECKey.import_key(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        key.ensure_kid()
        return key
