"""Connections to a job's service on a node, as the job's record describes it."""

from __future__ import annotations

from dataclasses import replace

from sublet.booking.model.job import JobState, State
from sublet.kernel.errors import SubletError
from sublet.reach.port import Reach


async def place_connector(reach: Reach, key: str, state: JobState) -> JobState:
    """Return the state with its connector reachable from here; if that fails, without it and with the reason."""
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
