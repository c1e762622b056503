"""The description of OAR for the shared code of batch systems."""

from __future__ import annotations

from sublet.platforms.batch.scheduler import Scheduler
from sublet.platforms.oar import commands as to
from sublet.platforms.oar.states import STATES

OAR = Scheduler(
    title="OAR",
    package=to.PACKAGE,
    states=STATES,
    away=to.AWAY,
    to_queue=to.to_queue,
    to_remember=to.to_remember,
    survey=to.to_survey(),
    needed=("nodes",),
    reaches_nodes=True,
    can_pause=True,
)
