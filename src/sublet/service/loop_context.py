"""What the steps of the loop work with."""

from __future__ import annotations

from dataclasses import dataclass

from sublet.service.clock import Clock
from sublet.service.executables import ExecutableKinds, Movers
from sublet.service.known_platforms import KnownPlatforms
from sublet.service.loop_state import LoopState
from sublet.service.ports import Callbacks, CodeGuard
from sublet.service.session_secrets import SessionSecrets
from sublet.service.signals import Signals
from sublet.service.throttle import Throttle
from sublet.settings import Settings
from sublet.store.store import Store


@dataclass(frozen=True)
class LoopContext:
    """Passed to each step, so that a step is a function of its context and a session."""

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
