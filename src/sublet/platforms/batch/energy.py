"""The energy of ended jobs from a scheduler's accounting, where the site measures it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sublet.booking.model.job import JobState, State
from sublet.booking.model.session import Usage
from sublet.platforms.batch.scheduler import Scheduler
from sublet.platforms.batch.states import session_of
from sublet.reach.port import Reach

LATE = 20.0  # seconds to wait until accounting knows how a job ended
JOULES = 3_600_000  # in a kWh
COUNTING = "it has ended; the energy that it used is being counted"


class EnergyAccounts:
    """Adds energy from accounting to each job's end; where energy is measured, the end is reported slightly later."""

    def __init__(self, scheduler: Scheduler) -> None:
        """Start with the assumption that the site doesn't measure energy."""
        self._scheduler = scheduler
        self.is_kept = False  # whether the site measures energy
        self._waits: dict[str, float] = {}  # jobs that accounting doesn't know as ended → since when
        self._told: set[str] = set()

    def forget(self, job: str) -> None:
        """Forget a job."""
        self._waits.pop(job, None)
        self._told.discard(job)

    async def add(self, reach: Reach, states: Mapping[str, JobState], now: float) -> dict[str, JobState]:
        """Return new states, with energy, for the ended jobs among these that haven't been completed before."""
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
    """Add the energy that a job used to its state; 0 means unknown."""
    if state.end is None or joules <= 0:
        return state
    usage = replace(state.end.usage or Usage(), energy=joules / JOULES, energy_source="measured")
    return replace(state, end=replace(state.end, usage=usage))
