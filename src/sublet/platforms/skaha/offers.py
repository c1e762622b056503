"""The offers of Skaha for a request, in the sizes that it has, and why a request could never run there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sublet.booking.model.offer import Answer, Node, Reason
from sublet.booking.model.request import Request
from sublet.booking.model.shape import Shape
from sublet.platforms.batch.fitting import InQueue, answer, find_excess, offer_for
from sublet.platforms.batch.site import SiteNode, SiteQueue
from sublet.platforms.skaha.readers import GB, SkahaSizes

KINDS = ("docker-container", "interactive")
USUAL_START = timedelta(seconds=30)


def refuse_request(request: Request, platform: str) -> Sequence[Reason]:
    """Return why the request could never run there: another kind, data, or results that must be sent."""
    executable = request.executable
    if executable is not None and executable.kind not in KINDS:
        message = f"{platform} runs containers and JupyterLab; it starts no programs, and brings no notebooks."
        wanted, limit = executable.kind, ", ".join(KINDS)
        return (Reason("urn:not-supported", "executable.kind", message, wanted, limit, "an image", platform),)
    if request.data or request.storage or request.outputs:
        message = f"{platform} brings no data and sends no results: its sessions see their owner's storage at /arc."
        return (Reason("urn:not-supported", "data", message, nearest="data that is at /arc there", platform=platform),)
    return ()


def make_offers(
    request: Request, way: str, platform: str, sizes: SkahaSizes, longest: timedelta | None, now: datetime
) -> Answer:
    """Return an offer on predicted terms, in the smallest sizes that are enough, or the limit that is exceeded."""
    most = Node(platform, max(sizes.cores), max(sizes.memory) * GB, max(sizes.gpus, default=0))
    if excess := find_excess(request, SiteQueue("", max_time=longest), [SiteNode(most, ())], platform):
        return Answer(reasons=(excess,))
    least = request.least
    cores, memory, gpus = sizes.fit(least.shape.cores, least.shape.memory, least.shape.gpus)
    if request.compute.cores.max < cores or request.compute.memory.max < memory * GB:
        message = f"{platform} has no size between what was asked for at least and at most; {cores} cores and "
        message += f"{memory}GiB are the next."
        reason = Reason(
            "urn:resource-limit", "compute", message, nearest=f"{cores} cores, {memory}GiB", platform=platform
        )
        return Answer(reasons=(reason,))
    wish = InQueue("", replace(least, shape=Shape(cores, memory * GB, gpus)))
    offer = offer_for(platform, request, wish, now + USUAL_START, way, platform, now)
    return answer([], [offer]) if isinstance(offer, Reason) else answer([offer], [])
