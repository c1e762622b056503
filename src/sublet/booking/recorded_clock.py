"""The clock that recorded times follow: the machine's, except for a moment after someone has set it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sublet.platforms.local.shim import clocks
from sublet.platforms.local.shim.processes import boot_id
from sublet.store.tx import Tx

LEAST_STEP = timedelta(seconds=2)  # smaller differences are smooth corrections of the clock
FAR = timedelta(hours=1)  # a step that may be a mistake
DOUBTED = timedelta(days=1)  # for how long such a step may be a mistake that nobody has corrected yet


def read_recorded_now(tx: Tx, now: datetime) -> datetime:
    """Return the time by the clock that recorded times follow; just after the clock was set, this is not `now`.

    What a person does to a session is recorded by this time: else a step that is taken back before anyone followed it
    would leave the session due at a time to come.
    """
    # The row is read in each transaction, because this process can't know it: another one on this machine may have
    # followed a step that was taken back since, so that nothing here has changed, but the recorded times have.
    recorded = tx.clocks.offset(boot_id())
    if recorded is None or abs(recorded.total_seconds() - clocks.offset()) < LEAST_STEP.total_seconds() / 2:
        return now
    return datetime.fromtimestamp(clocks.steady(), UTC) + recorded


def is_clock_doubted(tx: Tx, now: datetime) -> bool:
    """Whether the clock was set forward lately, maybe by mistake: nothing is deleted for its age then."""
    boot = boot_id()
    step, recorded = tx.clocks.last_step(boot), tx.clocks.offset(boot)
    if recorded is not None and clocks.offset() - recorded.total_seconds() >= FAR.total_seconds():
        return True  # the loop has not looked yet
    return step is not None and step.by >= FAR and now - step.at < DOUBTED
