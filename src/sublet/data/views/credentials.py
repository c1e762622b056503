"""The views of credentials for storage."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class CredentialView:
    """A credential without its secret, which is never shown again."""

    place: str  # the prefix of the addresses that it is for
    kind: Literal["login", "token", "s3", "key"]
    user: str = ""  # the user name, or the access key; for Globus a client id
    endpoint: str = ""
    region: str = ""
    created: datetime


@dataclass(frozen=True, kw_only=True)
class GlobusAsk:
    """A sign-in to Globus to begin."""

    place: str = "globus://"  # or globus://COLLECTION, for one only
    client_id: str = ""  # an app of Globus; empty: the service's own


@dataclass(frozen=True, kw_only=True)
class GlobusVisitView:
    """Where someone signs in to Globus, and the values to send along with the code."""

    address: str
    client_id: str
    verifier: str  # a secret of this sign-in, sent along with the code


@dataclass(frozen=True, kw_only=True)
class GlobusCodeAsk:
    """The code that Globus showed, and the values of its sign-in."""

    code: str
    client_id: str
    verifier: str
    place: str = "globus://"


@dataclass(frozen=True, kw_only=True)
class CredentialList:
    """Credentials, by address."""

    items: tuple[CredentialView, ...]


@dataclass(frozen=True, kw_only=True)
class CredentialAsk:
    """A credential to store: a login (user and secret), a token, S3 keys (user and secret), or an SSH key."""

    place: str
    kind: Literal["login", "token", "s3", "key"]
    secret: str
    user: str = ""
    endpoint: str = ""  # for s3://BUCKET the server; for SSH the host keys or their fingerprints, one per line
    region: str = ""
    passphrase: str = ""  # of an SSH key; not stored
    session_token: str = ""  # of temporary S3 keys
