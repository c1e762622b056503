"""Builds the use cases of other brokers: which brokers are known, and how to authenticate people to them."""

from __future__ import annotations

import getpass

from sublet.booking.brokers.identity import BrokerIdentities, OwnerLogins, OwnTokens, ServiceTokens, SignedErrands
from sublet.booking.brokers.platforms import BrokerPlatforms
from sublet.booking.brokers.registry import Brokers
from sublet.booking.platforms.changes import PlatformChanges
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.ports import AssertionSource, PlatformSource
from sublet.data.credentials import Credentials
from sublet.kernel.clock import Clock
from sublet.kernel.home import Home
from sublet.kernel.settings import Settings
from sublet.kernel.vault import Vault
from sublet.store.store import Store


def build_changes(
    settings: Settings,
    store: Store,
    now: Clock,
    platforms: KnownPlatforms,
    sources: tuple[PlatformSource, ...],
    vault: Vault,
    credentials: Credentials,
    assertions: AssertionSource,
    *,
    own_logins: bool,
) -> tuple[PlatformChanges, Brokers]:
    """Build the use cases that keep the known platforms, and the brokers that people add, up to date."""
    source = BrokerPlatforms(store)
    kept = ServiceTokens(store, vault)
    owner = getpass.getuser() if own_logins else ""
    owners = [OwnerLogins(Home(str(settings.home)), owner)] if own_logins else []
    identities = BrokerIdentities([OwnTokens(credentials), kept, *owners, SignedErrands(assertions)])
    tokens = credentials.find_token
    changes = PlatformChanges(settings, now, platforms, (*sources, source), own_logins, identities, tokens, owner)
    return changes, Brokers(store, now, vault, platforms, source, changes, kept)
