"""The description of PBS for the shared code of batch systems."""

from __future__ import annotations

from sublet.platforms.batch.scheduler import Scheduler
from sublet.platforms.pbs import commands as to
from sublet.platforms.pbs.states import STATES

PBS = Scheduler(
    title="PBS",
    package=to.PACKAGE,
    states=STATES,
    away=to.AWAY,
    to_queue=to.to_queue,
    to_remember=to.to_remember,
    survey=to.SURVEY,
    needed=("nodes", "queues"),
    reaches_nodes=True,
    can_pause=True,
)
