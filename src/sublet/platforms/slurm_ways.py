"""The ways in to what listens on a node, for jobs whose records say where that is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sublet.core.job import JobState, State
from sublet.errors import SubletError
from sublet.reach.port import Reach


@dataclass
class Ways:
    """The ways in to the jobs of one platform, by their keys."""

    _gone: set[str] = field(default_factory=set)  # jobs that have ended, and whose ways are closed

    async def placed(self, reach: Reach, key: str, state: JobState) -> JobState:
        """The same state, with the connector as it is reached from here; while it can't be, why not."""
        if state.state is State.ENDED and key not in self._gone:
            self._gone.add(key)
            await reach.untunnel(key)
        if state.connector is None:
            return state
        host, _, port = state.connector.location.rpartition(":")
        try:
            location = await reach.tunnel(key, host, int(port) if port.isdecimal() else 0)
        except SubletError as error:
            words = "; ".join(part for part in (state.condition, f"{error.message} {error.advice}".strip()) if part)
            return replace(state, connector=None, condition=words)
        return replace(state, connector=replace(state.connector, location=location))
