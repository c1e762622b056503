"""Tokens by which this broker asks others for its people: each signed here, for one person, one broker, one request."""

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
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of P-256


@dataclass
class Assertions:
    """Say to another broker who asks, without anything that the person could be robbed of."""

    settings: Settings
    store: Store
    now: Clock
    secrets: SessionSecrets
    knows_people: bool  # people sign in here; else there is its owner, and who was given a token

    @property
    def issuer(self) -> str:
        """By what other brokers know this one; NoAddress if the settings don't say."""
        if not self.settings.url:
            raise NoAddress
        return self.settings.url.rstrip("/")

    @property
    def can_sign(self) -> bool:
        """Whether this service has people to sign for, and an address by which others know it."""
        return self.knows_people and bool(self.settings.url)

    async def make(self, person: str, audience: str, errand: Errand) -> str:
        """A token for one request to one broker, by its address, for this person, for a minute."""
        from joserfc import jwt

        mail, identity = await self.store.read(lambda tx: self._find_identity(tx, person))
        id, place = str(uuid4()), audience.rstrip("/")
        claims = make_claims(self.issuer, person, mail, identity, place, errand, id, self.now())
        key = self._key()
        return jwt.encode({"alg": ALGORITHM, "kid": key.kid}, claims, key, algorithms=[ALGORITHM])

    def _find_identity(self, tx: Tx, person: str) -> tuple[str, KnownElsewhere | None]:
        """The confirmed address of someone, and one of their identities at issuers with its groups of now."""
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
        """The public keys by which others check these tokens, as a JWK set."""
        return {"keys": [{**self._key().as_dict(private=False), "use": "sig", "alg": ALGORITHM}]}

    def metadata(self) -> Mapping[str, Any]:
        """What this service says of itself as an issuer, as OpenID Connect Discovery has it."""
        return {
            "issuer": self.issuer,
            "jwks_uri": f"{self.issuer}/.well-known/jwks.json",
            "response_types_supported": [],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        }

    def _key(self) -> ECKey:
        """The key of this home: made of its secret, so that all its processes have the same."""
        from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
        from joserfc.jwk import ECKey

        seed = hashlib.sha512(self.secrets.of(PURPOSE).encode()).digest()
        private = derive_private_key(int.from_bytes(seed) % (ORDER - 1) + 1, SECP256R1())
        key = ECKey.import_key(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        key.ensure_kid()
        return key
