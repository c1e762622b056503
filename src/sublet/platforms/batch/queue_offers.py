"""Offers for each queue of a site whose scheduler can't predict a job's start: by the room that all jobs leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sublet.booking.model.offer import Answer, Offer, Reason
from sublet.booking.model.request import Request
from sublet.platforms.batch import fitting
from sublet.platforms.batch.planning import SitePlan, windows_ahead
from sublet.platforms.batch.site import SiteNode, SiteQueue, by_queue

AT_ONCE = 4  # the most offers per request, one for each queue


@dataclass(frozen=True, slots=True)
class QueueOffers:
    """The offers that a site's queues can make for one request."""

    scheduler: str  # its name for people
    platform: str
    queues: Sequence[SiteQueue]
    nodes: Sequence[SiteNode]
    leeway: timedelta  # what is requested of the scheduler beyond a session's own time

    def answer(self, request: Request, plan: SitePlan | None, way: str, now: datetime, parts: int) -> Answer:
        """Return one offer for each queue that fits, or each queue's reason.

        Without a plan, starts are as early as allowed.
        """
        if not self.queues:
            message = f"{self.platform} has no queue {request.scheduler.queue} that can be used."
            return Answer(reasons=(Reason("urn:not-supported", "platform", message, platform=self.platform),))
        there = by_queue(self.queues, self.nodes)
        answers = [self._look(request, queue, there[queue.name], plan, way, now, parts) for queue in self.queues]
        offers = [each for each in answers if isinstance(each, Offer)]
        return fitting.answer(offers[:AT_ONCE], [each for each in answers if isinstance(each, Reason)])

    def _look(
        self,
        request: Request,
        queue: SiteQueue,
        nodes: Sequence[SiteNode],
        plan: SitePlan | None,
        way: str,
        now: datetime,
        parts: int,
    ) -> Offer | Reason:
        if excess := fitting.find_excess(request, queue, nodes, self.platform):
            return excess
        windows = windows_ahead(request, max(now, request.not_before or now))
        least = request.least
        amounts = replace(least, parts=parts, nodes=max(least.nodes, queue.min_nodes))
        start: datetime | None = fitting.beginning(request, now) or now
        if plan:
            start = replace(plan, nodes=tuple(nodes)).find_start(amounts, amounts.time + self.leeway, windows)
        if start is None:
            message = f"{self.platform}: there is no room for it in {queue.name} in the time asked for."
            return Reason("urn:window-passed", "schedule", message, platform=self.platform)
        wish, note = fitting.InQueue(queue.name, amounts), "" if plan else "; its jobs were not seen"
        return fitting.offer_for(self.scheduler, request, wish, start, way, self.platform, now, note)


def choose_queues(queues: Sequence[SiteQueue], named: str) -> list[SiteQueue]:
    """Return the named queue, or all queues that accept jobs, the default one first."""
    chosen = [each for each in queues if each.name == named] if named else [each for each in queues if each.up]
    return sorted(chosen, key=lambda each: not each.default)
