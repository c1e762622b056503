"""The description of Slurm for the shared code of batch systems."""

from __future__ import annotations

from sublet.platforms.batch.pace import Limiter
from sublet.platforms.batch.scheduler import Answers, Scheduler
from sublet.platforms.slurm import commands as to
from sublet.platforms.slurm import readers as read
from sublet.platforms.slurm.states import STATES


def find_limiter(answers: Answers) -> Limiter | None:
    """Return Slurm's own limit on calls, where the site enables it."""
    return read.read_limiter(read.read_config(answers.get("config", "")))


def finds_energy(answers: Answers) -> bool:
    """Whether the site's accounting has the energy of jobs."""
    return read.counts_energy(read.read_config(answers.get("config", "")))


SLURM = Scheduler(
    title="Slurm",
    package=to.PACKAGE,
    states=STATES,
    away=to.AWAY,
    to_queue=to.to_queue,
    to_remember=to.to_remember,
    survey=to.SURVEY,
    needed=("nodes", "queues"),
    can_pause=True,
    read_limiter=find_limiter,
    to_energy=to.to_energy,
    counts_energy=finds_energy,
)
