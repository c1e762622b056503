"""Whether the service is healthy: its loop runs, and its database answers."""

from __future__ import annotations

import asyncio
from time import monotonic

from sublet.booking.loop.state import LoopState
from sublet.kernel.errors import BrokenStore
from sublet.store.store import Store

STALLED = 120.0  # seconds; the loop runs at least once a second unless something blocks it
PATIENCE = 5.0  # seconds that the database may take to answer


async def find_trouble(loop_state: LoopState, store: Store) -> str:
    """Return why sessions can't be looked after at present, or an empty text; anyone may read it."""
    if loop_state.trouble:
        return loop_state.trouble
    if loop_state.turned is not None and (since := monotonic() - loop_state.turned) > STALLED:
        return f"no session has been looked after for {since:.0f} s"
    try:
        async with asyncio.timeout(PATIENCE):
            await store.check()
    except BrokenStore as error:
        return f"the database can't be used ({error.values.get('why')})"
    except TimeoutError:
        return f"the database did not answer in {PATIENCE:.0f} s"
    return ""
