"""Sign-in to Globus as a person: a page of Globus shows a code, which is exchanged for a refresh token.

This is OAuth 2's authorization code flow with PKCE, which Globus offers to apps without a client secret.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx2

from sublet.movers.globus_api import TRANSFER_SCOPE, GlobusClient, GlobusFailed

SHOWS_CODE = "/v2/web/auth-code"  # the page of Globus that shows the code
DATA_ACCESS = "{auth}/scopes/{collection}/data_access"
TRANSFER = "transfer.api.globus.org"


def make_verifier() -> str:
    """Return a secret for one sign-in, without which its code is worthless."""
    return secrets.token_urlsafe(48)


def build_address(auth: str, client: str, place: str, verifier: str) -> str:
    """Return the address where a person signs in.

    For a single collection it also asks for consent to access its data.
    """
    auth, collection = auth.rstrip("/"), urlsplit(place).hostname or ""
    inner = DATA_ACCESS.format(auth=auth, collection=collection)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    query = {
        "client_id": client,
        "redirect_uri": f"{auth}{SHOWS_CODE}",
        "scope": f"{TRANSFER_SCOPE}[*{inner}]" if collection else TRANSFER_SCOPE,
        "state": "_default",
        "response_type": "code",
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "access_type": "offline",
    }
    return f"{auth}/v2/oauth2/authorize?{urlencode(query)}"


async def exchange_code(auth: str, client: str, code: str, verifier: str) -> str:
    """Exchange a code for a refresh token; raise GlobusFailed or Interrupted if that fails."""
    form = {
        "grant_type": "authorization_code",
        "client_id": client,
        "code": code,
        "code_verifier": verifier,
        "redirect_uri": f"{auth.rstrip('/')}{SHOWS_CODE}",
    }
    request = httpx2.Request(
        "POST", f"{auth.rstrip('/')}/v2/oauth2/token", data=form, headers={"Accept": "application/json"}
    )
    return read_refresh_token(await GlobusClient("", auth, None).send(request))


def read_refresh_token(answer: Mapping[str, Any]) -> str:
    """Return the refresh token for Transfer; Globus' answer may hold tokens for several services."""
    grants = [answer, *(grant for grant in answer.get("other_tokens") or () if isinstance(grant, dict))]
    for grant in grants:
        if grant.get("resource_server") == TRANSFER and grant.get("refresh_token"):
            return str(grant["refresh_token"])
    raise GlobusFailed("Globus gave no refresh token for its Transfer service; allow the app what it asks for")
