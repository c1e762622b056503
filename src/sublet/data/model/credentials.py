"""A person's credentials for storage: a login, a token or a pair of keys, each for one address only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from urllib.parse import unquote, urlsplit

SECURE = {
    "davs": "https",
    "dav": "http",
    "s3+https": "https",
    "s3+http": "http",
    "rucio": "https",
    "rucio+http": "http",
    "xroots": "roots",
    "sftp": "ssh",
    "rsync+ssh": "ssh",
}
PORTS = {"https": 443, "http": 80}
DEFAULT_PORTS = PORTS | {"roots": 1094, "ssh": 22, "rsync": 873}
S3_SCHEMES = ("s3", "s3+https", "s3+http")
WEB_SCHEMES = ("https", "davs", "http", "dav", "rucio", "rucio+http")
GLOBUS = "globus"
TOKEN_SCHEMES = (*WEB_SCHEMES, "roots", GLOBUS)  # XRootD accepts tokens over TLS only, and no passwords
SSH_SCHEMES = ("sftp", "rsync+ssh")
FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
VISIBLE = re.compile(r"[\x21-\x7e]*")  # what a header can carry unescaped
HOST_KEY = re.compile(r"(?:ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,3}")


class CredentialKind(StrEnum):
    """How a credential is presented to a server."""

    LOGIN = "login"  # a user name and a password
    TOKEN = "token"  # noqa: S105 - a bearer token
    S3 = "s3"  # an access key and its secret
    KEY = "key"  # a user name and a private SSH key


SCHEMES = {
    CredentialKind.LOGIN: (*WEB_SCHEMES, *SSH_SCHEMES, "rsync", GLOBUS),
    CredentialKind.TOKEN: TOKEN_SCHEMES,
    CredentialKind.S3: S3_SCHEMES,
    CredentialKind.KEY: SSH_SCHEMES,
}


@dataclass(frozen=True, slots=True)
class Credential:
    """One credential, which is never sent to any host but the one it is for."""

    place: str  # the prefix of the addresses that it is for: https://data.example.org/team, s3://bucket
    kind: CredentialKind
    # The user name, or the access key; for Globus, the client id that the secret or refresh token belongs to
    user: str = ""
    secret: str = field(default="", repr=False)
    endpoint: str = ""  # for s3://BUCKET the server, as https://s3.example.org; for SSH the host keys, one per line
    region: str = ""

    @property
    def s3_keys(self) -> tuple[str, str]:
        """The secret access key, and the session token of temporary keys, or an empty string."""
        secret, _, token = self.secret.partition("\n")
        return secret, token

    def with_session_token(self, token: str) -> Credential:
        """Return S3 keys with the session token that they are valid with, which is as secret as they are."""
        return replace(self, secret=f"{self.secret}\n{token}") if token else self

    def covers(self, location: str) -> bool:
        """Whether the credential is for this address."""
        own, asked = _parts(self.place), _parts(location)
        if own == (GLOBUS, "", ""):
            return asked[0] == GLOBUS  # one sign-in to Globus covers all collections
        return own[:2] == asked[:2] and f"{asked[2]}/".startswith(f"{own[2]}/")


def _parts(address: str) -> tuple[str, str, str]:
    """Return an address's protection, host with port, and path; for s3://BUCKET/KEY the bucket is the host."""
    parts = urlsplit(address)
    scheme = SECURE.get(parts.scheme.lower(), parts.scheme.lower())
    host = (parts.hostname or "").lower()
    path = parts.path.rstrip("/")
    if ".." in unquote(path).split("/"):
        path = ""  # it may lead anywhere on the host, so only a credential for the whole host covers it
    if scheme not in DEFAULT_PORTS:
        return scheme, host, path
    try:
        port = parts.port or DEFAULT_PORTS[scheme]
    except ValueError:
        port = 0
    return scheme, f"{host}:{port}", path.replace("//", "/", 1) if scheme == "roots" else path


def credential_for(credentials: Iterable[Credential], location: str) -> Credential | None:
    """Return the credential whose place matches the address most specifically, or None."""
    fitting = (credential for credential in credentials if credential.covers(location))
    return max(fitting, key=lambda credential: [len(part) for part in _parts(credential.place)[1:]], default=None)


@dataclass(frozen=True, slots=True)
class SealedCredential:
    """A credential as it is stored: with its owner, and with a secret that only this service can read."""

    id: str
    person: str
    created: datetime
    credential: Credential  # with its `secret` sealed

    @property
    def purpose(self) -> str:
        """The purpose that the secret is sealed for."""
        return f"credential:{self.id}"


def check_place(place: str, kind: CredentialKind, endpoint: str) -> str:
    """Return what is wrong with a credential's address or its server; empty if nothing is."""
    is_ssh = place.partition(":")[0].lower() in SSH_SCHEMES
    try:
        parts, server = urlsplit(place), urlsplit("" if is_ssh else endpoint)
        _ = parts.port, server.port
    except ValueError as error:
        return f"{place} is not an address: {error}"
    schemes = SCHEMES[kind]
    has_host = bool(parts.hostname) or place.lower().rstrip("/") == f"{GLOBUS}:"
    if parts.scheme.lower() not in schemes or not has_host:
        return f"{place} is no address that it could be for; write one that begins with {' or '.join(schemes)}"
    if parts.username or parts.password or parts.query or parts.fragment:
        return "the address has a user name, a password or a query in it; write it without"
    if is_ssh:
        return _check_host_keys(endpoint)
    if endpoint and (server.scheme.lower() not in PORTS or not server.hostname or parts.scheme.lower() != "s3"):
        return f"{endpoint} is not the address of a server; write --endpoint https://s3.example.org with s3://BUCKET"
    return ""


def check_secret(credential: Credential) -> str:
    """Return what is wrong with a credential's values, without quoting them; empty if nothing is.

    Programs and libraries quote headers that they can't send in their error messages.
    """
    if CONTROL.search(f"{credential.user}{credential.region}"):
        return "its user or region has control characters in it"
    if credential.kind is CredentialKind.KEY:
        return ""
    secret = "".join(credential.s3_keys) if credential.kind is CredentialKind.S3 else credential.secret
    if CONTROL.search(secret):
        return "it is more than one line, or has control characters in it"
    words = {
        CredentialKind.TOKEN: credential.secret,
        CredentialKind.S3: f"{credential.user}{secret}{credential.region}",
    }.get(credential.kind, "")
    return "" if VISIBLE.fullmatch(words) else "it has spaces, or characters that are no ASCII"


def _check_host_keys(text: str) -> str:
    for line in text.splitlines():
        if not FINGERPRINT.fullmatch(line) and not HOST_KEY.fullmatch(line):
            return f"{line[:80]!r} is no host key; write its fingerprint, as SHA256:…, or the key, as ssh-ed25519 AAAA…"
    return ""
