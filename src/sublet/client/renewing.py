"""A token that expires while one works: another is got for it by the login that is kept, and nobody notices."""

from __future__ import annotations

import time
from dataclasses import replace

from sublet.client.address import Address
from sublet.kernel.home import sublet_home
from sublet.kernel.kept_logins import EARLY, renew_login


def is_due(address: Address) -> bool:
    """Whether its token should be renewed before it is shown again."""
    return bool(address.token_ends) and time.time() >= address.token_ends - EARLY


def renew(address: Address) -> Address:
    """The same service, with a token that counts; NotSignedIn if its issuer gives no more."""
    login = renew_login(sublet_home(), address.text, address.token)
    return replace(address, token=login.access, token_ends=login.expires) if login else replace(address, token_ends=0.0)
