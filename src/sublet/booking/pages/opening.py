"""The way into an interactive session: a page says what the session waits for, and leads there once it is ready."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sublet.api.people import service_of
from sublet.booking.model.phases import ENDING, Phase
from sublet.booking.pages.sessions import ADDRESS, find_ways_in, stages
from sublet.web.drawing import page
from sublet.web.reading import visitor


async def look(request: Request) -> Response:
    """Show a page that leads to the session by itself; redirect to its own page if it is over, or not theirs."""
    who = await visitor(request)
    service = service_of(request)
    session, sentences = await service.explanations.explain(request.path_params["id"], who.person)
    is_theirs = service.authority.can_read(session.person, who.person)
    if not is_theirs or not session.offer.interactive or session.phase in ENDING or session.phase is Phase.OFFERED:
        return RedirectResponse(f"/web/sessions/{session.id}", 303)
    ways_in = find_ways_in(service, session)
    return page(
        request,
        "opening.html",
        who,
        session=session,
        sentences=[ADDRESS.sub(".", sentence) for sentence in sentences],
        address=ways_in[0] if ways_in else "",
        stages=stages(session),
    )
