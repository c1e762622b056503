"""The description of LSF for the shared code of batch systems."""

from __future__ import annotations

from sublet.platforms.batch.scheduler import Scheduler
from sublet.platforms.lsf import commands as to
from sublet.platforms.lsf.states import STATES

LSF = Scheduler(
    title="LSF",
    package=to.PACKAGE,
    states=STATES,
    away=to.AWAY,
    to_queue=to.to_queue,
    to_remember=to.to_remember,
    survey=to.SURVEY,
    needed=("load", "queues"),
    reaches_nodes=True,
    can_pause=True,
)
