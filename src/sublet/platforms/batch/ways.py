"""The way in to what listens on a node, for a job whose record says where that is."""

from __future__ import annotations

from dataclasses import replace

from sublet.booking.model.job import JobState, State
from sublet.kernel.errors import SubletError
from sublet.reach.port import Reach


async def place_connector(reach: Reach, key: str, state: JobState) -> JobState:
    """The same state, with the connector as it is reached from here; while it can't be, why not."""
    if state.state is State.ENDED:
        await reach.untunnel(key)
    if state.connector is None:
        return state
    host, _, port = state.connector.location.rpartition(":")
    try:
        location = await reach.tunnel(key, host, int(port) if port.isdecimal() else 0)
    except SubletError as error:
        words = "; ".join(part for part in (state.condition, error.sentences) if part)
        return replace(state, connector=None, condition=words)
    return replace(state, connector=replace(state.connector, location=location))
