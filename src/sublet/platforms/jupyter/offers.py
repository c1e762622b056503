"""The offers of a hub or a server for a request: a kernel or an interactive server, as soon as there is room."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sublet.booking.model.offer import Answer, Node, Reason
from sublet.booking.model.request import Request
from sublet.platforms.batch.fitting import InQueue, answer, find_excess, offer_for
from sublet.platforms.batch.site import SiteNode, SiteQueue

KINDS = ("jupyter-notebook", "interactive")
USUAL_START = timedelta(seconds=15)  # most hubs start a server in this time


def refuse_kind(request: Request, platform: str) -> Sequence[Reason]:
    """Return why the request could never run there."""
    executable = request.executable
    if executable is None or executable.kind in KINDS:
        return ()
    message = f"{platform} runs notebooks and JupyterLab in servers of Jupyter; it starts no programs or containers."
    wanted, limit = executable.kind, ", ".join(KINDS)
    nearest = "the same as a notebook, or a platform that starts programs"
    return (Reason("urn:not-supported", "executable.kind", message, wanted, limit, nearest, platform),)


def make_offers(
    request: Request, way: str, platform: str, node: Node, longest: timedelta | None, now: datetime, *, is_full: bool
) -> Answer:
    """Return an offer on predicted terms, or the limit that the request exceeds."""
    queue = SiteQueue("", max_time=longest)
    nodes = [SiteNode(node, ())]
    if excess := find_excess(request, queue, nodes, platform):
        return Answer(reasons=(excess,))
    wish = InQueue("", request.least)
    note = ", after other sessions of Sublet there" if is_full else ""
    offer = offer_for(platform, request, wish, now + USUAL_START, way, platform, now, note)
    return answer([], [offer]) if isinstance(offer, Reason) else answer([offer], [])
