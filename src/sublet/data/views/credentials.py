"""Credentials for storage, as they travel."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class CredentialView:
    """A credential without its secret, which is never shown again."""

    place: str  # the beginning of the addresses that it is for
    kind: Literal["login", "token", "s3", "key"]
    user: str = ""  # the user name, or the access key; of Globus a client's id
    endpoint: str = ""
    region: str = ""
    created: datetime


@dataclass(frozen=True, kw_only=True)
class GlobusAsk:
    """A sign-in to Globus that is to begin."""

    place: str = "globus://"  # or globus://COLLECTION, for one alone
    client_id: str = ""  # an app of Globus; empty: the service's own


@dataclass(frozen=True, kw_only=True)
class GlobusVisitView:
    """Where someone signs in to Globus, and what belongs to the code that is shown there."""

    address: str
    client_id: str
    verifier: str  # a secret of this sign-in: it is sent along with the code, and shown to nobody


@dataclass(frozen=True, kw_only=True)
class GlobusCodeAsk:
    """The code that Globus showed, with what it belongs to."""

    code: str
    client_id: str
    verifier: str
    place: str = "globus://"


@dataclass(frozen=True, kw_only=True)
class CredentialList:
    """Credentials, by their addresses."""

    items: tuple[CredentialView, ...]


@dataclass(frozen=True, kw_only=True)
class CredentialAsk:
    """A credential that is to be kept: a login (user and secret), a token, S3 keys (user and secret), or an SSH key."""

    place: str
    kind: Literal["login", "token", "s3", "key"]
    secret: str
    user: str = ""
    endpoint: str = ""  # of s3://BUCKET the server; of SSH the host keys or their fingerprints, one on each line
    region: str = ""
    passphrase: str = ""  # of an SSH key; it is not kept
