"""The energy of jobs that have ended, out of a scheduler's accounting, where the site counts it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sublet.booking.model.job import JobState, State
from sublet.booking.model.session import Usage
from sublet.platforms.batch.scheduler import Scheduler
from sublet.platforms.batch.states import session_of
from sublet.reach.port import Reach

LATE = 20.0  # seconds: accounting that does not know by then how a job ended is not waited for
JOULES = 3_600_000  # in a kWh
COUNTING = "it has ended; the energy that it used is being counted"


class EnergyAccounts:
    """Adds to each end what accounting knows; an end is told a moment later for it, where energy is counted."""

    def __init__(self, scheduler: Scheduler) -> None:
        """No energy is counted, as far as is known."""
        self._scheduler = scheduler
        self.is_kept = False  # whether the site counts energy
        self._waits: dict[str, float] = {}  # jobs that accounting does not know as over → since when
        self._told: set[str] = set()

    def forget(self, job: str) -> None:
        """Know nothing of it any more."""
        self._waits.pop(job, None)
        self._told.discard(job)

    async def add(self, reach: Reach, states: Mapping[str, JobState], now: float) -> dict[str, JobState]:
        """The states of those among these that have ended, and were not asked for before: with their energy."""
        ask = self._scheduler.to_energy
        ended = {job: state for job, state in states.items() if state.state is State.ENDED and job not in self._told}
        if ask is None or not self.is_kept or not ended:
            return {}
        [used] = await reach.run_all([ask(list(dict.fromkeys(map(session_of, ended))))])
        return {job: self._judge(job, state, used, now) for job, state in ended.items()}

    def _judge(self, job: str, state: JobState, used: Mapping[str, int], now: float) -> JobState:
        if job not in used and now - self._waits.setdefault(job, now) < LATE:
            return JobState(State.RUNNING, started=state.started, condition=COUNTING)
        self._waits.pop(job, None)
        self._told.add(job)
        return add_energy(state, used.get(job, 0))


def add_energy(state: JobState, joules: int) -> JobState:
    """A state with the energy that its job used; 0: that is not known."""
    if state.end is None or joules <= 0:
        return state
    usage = replace(state.end.usage or Usage(), energy=joules / JOULES, energy_source="measured")
    return replace(state, end=replace(state.end, usage=usage))
