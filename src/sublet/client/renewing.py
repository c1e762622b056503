"""Renews a token that expires during use, by the stored login and without the person's action."""

from __future__ import annotations

import time
from dataclasses import replace

from sublet.client.address import Address
from sublet.kernel.home import sublet_home
from sublet.kernel.kept_logins import EARLY, renew_login


def is_due(address: Address) -> bool:
    """Whether the token should be renewed before it is used again."""
    return bool(address.token_ends) and time.time() >= address.token_ends - EARLY


def renew(address: Address) -> Address:
    """Return the address with a renewed token; raise NotSignedIn if its issuer refuses."""
    login = renew_login(sublet_home(), address.text, address.token)
    return replace(address, token=login.access, token_ends=login.expires) if login else replace(address, token_ends=0.0)
