"""What the loop passes to each step."""

from __future__ import annotations

from dataclasses import dataclass

from sublet.booking.loop.state import LoopState
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.ports import Callbacks, CodeGuard, CredentialSource, PlaceSource, TransferHistory
from sublet.booking.price_book import PriceBook
from sublet.booking.session_secrets import SessionSecrets
from sublet.booking.signals import Signals
from sublet.booking.visits import Visits
from sublet.data.bringing import NodeSystems
from sublet.data.executables import ExecutableKinds, Movers
from sublet.kernel.clock import Clock
from sublet.kernel.settings import Settings
from sublet.kernel.throttle import Throttle
from sublet.store.store import Store


@dataclass(frozen=True)
class LoopContext:
    """What a step needs, so that a step is a function of its context and a session."""

    settings: Settings
    store: Store
    now: Clock
    platforms: KnownPlatforms
    kinds: ExecutableKinds
    movers: Movers
    signals: Signals
    loop_state: LoopState
    secrets: SessionSecrets
    throttle: Throttle
    code: CodeGuard
    callbacks: Callbacks
    credentials: CredentialSource
    places: PlaceSource
    transfers: TransferHistory
    systems: NodeSystems
    price_book: PriceBook
    visits: Visits
    has_strangers: bool  # sessions belong to other people than the owner of this machine
