"""Converts the values of booking to the views under /v1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import get_type_hints

from sublet.booking.model.answers import list_unanswered
from sublet.booking.model.ends import end_sentence
from sublet.booking.model.events import Event
from sublet.booking.model.offer import (
    Node,
    Offer,
    Predicted,
    Quote,
    Reason,
    Remote,
    Take,
    find_first_terms,
    list_route,
)
from sublet.booking.model.phases import CLIENT_MOVES, Phase
from sublet.booking.model.pledge import describe_why, pledge_text
from sublet.booking.model.ranking import Preference
from sublet.booking.model.session import End, OfferSet, Session, find_likely_end
from sublet.booking.model.shape import sizes_of
from sublet.booking.model.staging import describe_staging
from sublet.booking.views.events import EventView
from sublet.booking.views.offers import OfferSetView, OfferView, ReasonView
from sublet.booking.views.platforms import BusyView, CalendarView, LaneView, NodeView
from sublet.booking.views.quotes import QuoteView, RunTimeView, StagingView, TermsView
from sublet.booking.views.sessions import ConnectorView, EndView, SessionView, UsageView

SHORT = 8  # characters of an id that a person needs to type
SAME = tuple(  # fields that a view shows unchanged
    name for name, kind in get_type_hints(SessionView).items() if get_type_hints(Session).get(name) == kind
)


def offerset_view(
    offerset: OfferSet, base: str, notes: Sequence[str] = (), prefer: Preference = "soonest"
) -> OfferSetView:
    """Convert an offer set, with its offers as they are now."""
    executable = offerset.request.executable
    return OfferSetView(
        id=offerset.id,
        result=offerset.result,
        name=executable.name if executable else "",
        kind=executable.kind if executable else "",
        person=offerset.person,
        created=offerset.created,
        expires=offerset.expires if offerset.offers else None,
        offers=tuple(offer_view(session) for session in offerset.offers),
        reasons=tuple(reason_view(reason) for reason in offerset.reasons),
        notes=tuple(notes),
        unanswered=list_unanswered(offerset.reasons),
        platform=offerset.request.platform or "",
        prefer=prefer,
        page=f"{base}/web/offersets/{offerset.id}" if base else "",
    )


def offer_view(session: Session) -> OfferView:
    """Convert a session that is, or was, an offer."""
    offer = session.offer
    return OfferView(
        id=session.id,
        short=session.id[:SHORT],
        phase=session.phase.value,
        platform=offer.platform,
        pledge=pledge_text(offer.pledge),
        way=offer.way,
        start=offer.start,
        latest_start=offer.latest_start,
        duration=offer.duration,
        until=offer.end,
        prepare=offer.prepare,
        nodes=offer.nodes,
        **sizes_of(offer.shape),
        gpu_sorts=offer.gpu_sorts,
        storage=dict(offer.storage),
        pools=dict(offer.pools),
        costs=quote_views(offer.costs),
        metrics=quote_views(offer.metrics),
        terms=terms_view(offer),
        staging=staging_view(session),
        run_time=run_time_view(session),
        why=describe_why(offer),
        is_here=offer.is_here,
        needs_login=offer.needs_login,
        expires=session.expires,
    )


def session_view(session: Session, base: str) -> SessionView:
    """Convert a session; `base` is the address under which its page and connectors are reached."""
    offer = session.offer
    return SessionView(
        **{name: getattr(session, name) for name in SAME},
        short=session.id[:SHORT],
        phase=session.phase.value,
        marks=tuple(sorted(mark.value for mark in session.marks)),
        platform=offer.platform,
        pledge=pledge_text(offer.pledge),
        way=offer.way,
        nodes=offer.nodes,
        **sizes_of(offer.shape),
        gpu_sorts=offer.gpu_sorts,
        storage=dict(offer.storage),
        pools=dict(offer.pools),
        duration=offer.duration,
        end=end_view(session.end) if session.end else None,
        connectors=tuple(
            ConnectorView(kind=c.kind, status=c.status, protocol=c.protocol, location=c.address(base))
            for c in session.connectors
        ),
        costs=quote_views(offer.costs),
        metrics=quote_views(offer.metrics),
        terms=terms_view(offer),
        staging=staging_view(session),
        run_time=run_time_view(session),
        why=describe_why(offer),
        after=offer.after,
        options=tuple(move.value for move in CLIENT_MOVES.get(Phase(session.phase), ())),
        page=f"{base}/web/sessions/{session.id}" if base else "",
    )


def terms_view(offer: Offer) -> TermsView:
    """Convert the terms of an offer."""
    terms, first = offer.terms, find_first_terms(offer.terms)
    view = TermsView(kind=terms.kind)
    if isinstance(terms, Remote):
        route = "/".join(list_route(offer.platform, terms))
        inner = first.kind if first else ""
        view = replace(view, url=terms.url, expires=terms.expires, inner=inner, route=route, held=terms.held)
    if isinstance(first, Predicted):
        view = replace(view, p10=first.p10, p50=first.p50, p90=first.p90, samples=first.samples, as_of=first.as_of)
    return view


def staging_view(session: Session) -> StagingView | None:
    """Convert how long a session's staging should take, and took; None if nothing is staged."""
    staging, took = session.offer.staging, session.staged
    if not staging.items:
        return None
    time = staging.time
    return StagingView(
        low=time.low,
        likely=time.likely,
        high=time.high,
        samples=staging.samples,
        there=staging.there,
        took=took,
        sentence=describe_staging(staging, took),
    )


def run_time_view(session: Session) -> RunTimeView | None:
    """Convert how long a session is likely to run; None if too little is known of earlier runs."""
    estimate, over = session.offer.run_time, find_likely_end(session)
    if estimate is None or over is None:
        return None
    return RunTimeView(
        low=estimate.low,
        likely=estimate.likely,
        high=estimate.high,
        runs=estimate.runs,
        program=estimate.program,
        whose=estimate.whose,
        over=over,
        sentence=estimate.describe(),
    )


def quote_views(quotes: Iterable[Quote]) -> tuple[QuoteView, ...]:
    """Convert costs, or metrics."""
    return tuple(QuoteView(type=q.type, min=q.min, max=q.max, description=q.description) for q in quotes)


def reason_view(reason: Reason) -> ReasonView:
    """Convert a reason."""
    return ReasonView(
        kind=reason.kind,
        field=reason.field,
        message=reason.message,
        wanted=reason.wanted,
        limit=reason.limit,
        nearest=reason.nearest,
        platform=reason.platform,
        as_of=reason.as_of,
    )


def end_view(end: End) -> EndView:
    """Convert an end."""
    used = end.usage
    return EndView(
        kind=end.kind.value,
        code=end.code,
        signal=end.signal,
        by=end.by,
        detail=end.detail,
        sentence=end_sentence(end),
        usage=UsageView(**asdict(used)) if used else None,
    )


def event_view(event: Event) -> EventView:
    """Convert an event."""
    return EventView(
        id=event.id,
        time=event.time,
        session=event.session,
        person=event.person,
        kind=event.kind.value,
        detail=event.detail,
        phase=event.phase,
    )


def node_views(nodes: Iterable[Node]) -> tuple[NodeView, ...]:
    """Convert nodes."""
    return tuple(NodeView(name=n.name, **sizes_of(n)) for n in nodes)


def calendar_view(
    platform: str,
    start: datetime,
    end: datetime,
    nodes: Iterable[Node],
    pools: Mapping[str, int],
    busy: Mapping[str, Iterable[Take]],
) -> CalendarView:
    """Convert what is taken on a platform, with one lane for each node and pool."""
    lanes = [LaneView(name=n.name, **sizes_of(n), busy=_busy(busy.get(n.name, ()), pool=False)) for n in nodes]
    lanes += [
        LaneView(name=name, pool=True, size=size, busy=_busy(busy.get(name, ()), pool=True))
        for name, size in pools.items()
    ]
    return CalendarView(platform=platform, start=start, end=end, lanes=tuple(lanes))


def _busy(takes: Iterable[Take], *, pool: bool) -> tuple[BusyView, ...]:
    return tuple(BusyView(start=t.start, end=t.end, **sizes_of(t), size=t.size) for t in takes if t.pool is pool)
