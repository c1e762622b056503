"""Whether a queue takes jobs, which OAR lists to administrators only.

`oarnodes --sql` answers everybody with the resources that fulfil a condition, and the condition may be about queues: if
it holds, one resource is the answer, and otherwise none.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from datetime import timedelta

from sublet.booking.model.offer import Reason
from sublet.kernel.errors import LoginNeeded
from sublet.platforms.oar.readers import read_resources
from sublet.reach.port import Command, Outcome, Reach, as_is

NAME = re.compile(r"[A-Za-z0-9_.-]{1,255}")  # what may stand in a condition
CLOSED = "EXISTS (SELECT 1 FROM queues WHERE queue_name = '{}' AND state <> 'Active')"
ABSENT = "NOT EXISTS (SELECT 1 FROM queues WHERE queue_name = '{}')"
ONE = "resource_id = (SELECT MIN(resource_id) FROM resources) AND "


def to_ask(condition: str, queue: str) -> Command[Outcome]:
    """Ask whether a condition holds for a queue."""
    return Command(("oarnodes", "-J", "--sql", ONE + condition.format(queue)), as_is, calls=1)


@dataclass
class OarQueues:
    """The queues of a site, each asked for rarely."""

    _known: dict[str, tuple[float, Reason | None]] = field(default_factory=dict)

    def forget(self) -> None:
        """Ask again the next time."""
        self._known.clear()

    async def find_refusal(self, platform: str, reach: Reach, queue: str, good_for: timedelta) -> Reason | None:
        """Return why a queue takes no jobs; None if it does, or nobody can tell."""
        if not NAME.fullmatch(queue):
            return refuse_queue(platform, queue, f"has no queue {queue}")
        when, known = self._known.get(queue, (float("-inf"), None))
        if time.monotonic() - when <= good_for.total_seconds():
            return known
        try:
            closed, absent = await reach.run_all([to_ask(CLOSED, queue), to_ask(ABSENT, queue)])
        except LoginNeeded:
            return known
        refusal = None
        if _holds(closed):
            refusal = refuse_queue(platform, queue, f"takes no jobs in the queue {queue} now: it is disabled")
        elif _holds(absent):
            refusal = refuse_queue(platform, queue, f"has no queue {queue}")
        self._known[queue] = time.monotonic(), refusal
        return refusal


def refuse_queue(platform: str, queue: str, why: str) -> Reason:
    """Return the reason why a queue can't be used."""
    return Reason("urn:not-supported", "queue", f"{platform} {why}.", wanted=queue, platform=platform)


def _holds(answer: Outcome) -> bool:
    return not answer.code and bool(read_resources(answer.text))
