"""Sessions: ps, status, explain, extend, delete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from sublet.booking.calls import sessions
from sublet.booking.cli.connecting import ready_lines
from sublet.booking.cli.session_filters import MOST, filter_options, filters_of, list_sessions
from sublet.booking.model.gpu_sorts import describe_gpus
from sublet.booking.model.phases import ACTIVE, OVER, Phase
from sublet.booking.views.sessions import EndView, SessionPage, SessionView, UsageView
from sublet.cli.command import command
from sublet.cli.keys import key_option
from sublet.cli.output import Output, pairs, table
from sublet.cli.texts import away, describe_price, length, moment, size, when
from sublet.kernel.texts import count_text

if TYPE_CHECKING:
    from sublet.client.link import Link

CURRENT = (*sorted(ACTIVE), Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED)
RECENT = timedelta(days=1)
HEAD = ("ID", "PERSON", "NAME", "KIND", "PHASE", "WHERE", "CORES", "MEMORY", "GPUS", "TIME", "NOTE")


@command("ps", "sublet ps --all --phase FAILED", "sublet ps --everyone --platform keeling")
@click.option("--all", "-a", "every", is_flag=True, help="Also old ones, offers, and what never began.")
@filter_options
@click.option("--limit", type=click.IntRange(1, MOST), default=100, show_default=True, help="How many at most.")
def ps(out: Output, every: bool, limit: int, **chosen: Any) -> None:
    """List active sessions and those that ended in the last day. Operators can list everyone's."""
    link, filters = out.link(), filters_of(chosen)
    if every or "phase" in filters:
        page = list_sessions(link, limit=limit, **filters)
    elif filters.keys() & {"since", "until"}:
        page = list_sessions(link, limit=limit, phase=CURRENT, **filters)
    else:
        page = _current(link, {**filters, "limit": limit})
    now = datetime.now(UTC)
    out.show(
        page,
        lambda: draw_sessions(page.items, now, owners="person" in filters),
        lambda: (view.short for view in page.items),
    )
    if not page.items and out.for_people:
        out.note("No sessions match." if every or filters else "No sessions now. `sublet ps --all` looks further back.")
        if "person" not in filters and _sees_others(link):
            out.note("You are an operator: `sublet ps --everyone` lists what other people run.")
    elif page.next:
        out.note(f"There are more: add --limit {min(limit * 2, MOST)}." if limit < MOST else "There are more.")


def _sees_others(link: Link) -> bool:
    from sublet.people.calls import people  # only needed for an empty list

    who = link.do(people.whoami())
    return who.operator and who.mode == "gateway"


def _current(link: Link, chosen: dict[str, Any]) -> SessionPage:
    """List sessions that are active or ended in the last day, with a second call if active ones may be missing."""
    page = list_sessions(link, phase=CURRENT, **chosen)
    since = datetime.now(UTC) - RECENT
    kept = {view.id: view for view in page.items if view.phase not in OVER or (view.ended or view.modified) > since}
    if page.next:
        kept |= {view.id: view for view in list_sessions(link, active=True, **chosen).items}
    newest = sorted(kept.values(), key=lambda view: view.created, reverse=True)
    return SessionPage(items=tuple(newest), next=page.next if len(newest) >= len(page.items) else None)


def draw_sessions(views: Iterable[SessionView], now: datetime, *, owners: bool = False) -> list[str]:
    """Draw sessions as a table, with their owners if wanted; empty if there are none."""
    rows = [
        (
            view.short,
            view.person if owners else "",
            view.name if view.name != view.kind else "",
            view.kind,
            view.phase,
            view.platform,
            _each(view.cores, view),
            size(view.memory),
            str(view.gpus or ""),
            _time(view, now),
            _remark(view),
        )
        for view in views
    ]
    return table(HEAD, rows, keep=("PHASE",), least=("MEMORY", "KIND", "CORES")) if rows else []


def _each(number: int, view: SessionView) -> str:
    return f"{len(view.nodes)}×{number}" if len(view.nodes) > 1 else str(number)


def _time(view: SessionView, now: datetime) -> str:
    if view.phase == Phase.OFFERED:
        return f"{'held' if view.terms.is_held else 'not held'}, expires {away(view.expires, now)}"
    if view.ended and view.started:
        since = away(view.ended, now, units=1)
        return f"took {length(view.ended - view.started)}, {'just now' if since == 'now' else since}"
    if view.phase in OVER:
        return away(view.ended or view.modified, now, units=1)
    if view.started:
        left = f", {length(view.until - now)} left" if view.until and view.until > now else ""
        return f"for {length(now - view.started)}{left}"
    if view.start is None:
        return ""
    return f"starts {away(view.start, now)}" if view.start > now else f"due {away(view.start, now)}"


def _remark(view: SessionView) -> str:
    """Return a few words that fit a table; `sublet explain` has the whole sentence."""
    if view.condition:
        return view.condition
    if not view.end or view.phase == Phase.COMPLETED:
        return ""
    return describe_end_briefly(view.end) or view.end.sentence


def describe_end_briefly(end: EndView) -> str:
    """Describe the most common ends in two or three words; empty for the others."""
    if end.kind == "exited":
        return f"exit code {end.code}"
    if end.kind == "signalled":
        return f"signal {end.signal}"
    if end.kind == "cancelled" and end.by and not end.detail:
        return f"by {end.by}"
    return {"timeout": "time limit", "out-of-memory": "out of memory", "disk-full": "disk full"}.get(end.kind, "")


@command("status", "sublet status 3f2a")
@click.argument("session")
def status(out: Output, session: str) -> None:
    """Show everything about a session."""
    link = out.link()
    view = link.do(sessions.session(session))
    roads = _find_roads(link, view) if view.staging and out.for_people else []
    out.show(view, lambda: describe_session(view, datetime.now(UTC), roads), lambda: [view.phase])


def _find_roads(link: Link, view: SessionView) -> list[str]:
    """Return by which road each piece of the session's data was staged."""
    from sublet.booking.calls.events import events  # most sessions have no data

    return [event.detail for event in link.do(events(view.id)).items if event.kind == "session.staged"]


def describe_session(view: SessionView, now: datetime, roads: Sequence[str] = ()) -> list[str]:
    """Describe a session in full."""
    usage = view.end.usage if view.end else None
    ready = ready_lines(view)
    facts = pairs(
        [
            ("session", view.id),
            ("name", view.name if view.name != view.kind else ""),
            ("phase", view.phase),
            ("condition", view.condition),
            ("end", view.end.sentence if view.end else ""),
            ("used", describe_use(usage) if usage else ""),
            ("kind", f"{view.kind}, run by {view.way}" if view.way else view.kind),
            ("where", ", ".join([view.terms.route or view.platform, *view.nodes])),
            ("pledge", view.pledge),
            ("has", _has(view)),
            ("terms", view.terms.words),
            ("staging", view.staging.sentence if view.staging else ""),
            ("likely", _describe_run_time(view, now)),
            *(("data", road) for road in roads),
            ("after", ", ".join(id[:8] for id in view.after)),
            ("costs", costs(view)),
            ("expires", when(view.expires, now) if view.phase == Phase.OFFERED else ""),
            ("start", when(view.start, now) if not view.started else ""),
            ("started", when(view.started, now)),
            ("until", when(view.until, now) if view.phase not in OVER else ""),
            ("ended", when(view.ended, now)),
            *(("connect", f"{way.location} ({way.status.lower()})") for way in view.connectors if not ready),
            ("page", view.page),
            ("person", view.person),
        ]
    )
    return [*facts, "", *ready] if ready else facts


def describe_use(usage: UsageView) -> str:
    """Say what a session used: time, memory, energy and carbon, and whether the energy was measured."""
    words = [f"{usage.wall:.1f} s", f"{usage.cpu:.1f} s of CPU", f"{size(usage.peak_memory)} at most"]
    if usage.energy_source:
        measured = "measured" if usage.energy_source == "measured" else "by the price list"
        words.append(f"{usage.energy:.3g} kWh ({measured})")
    words += [f"{usage.carbon:.3g} g of CO2"] if usage.carbon else []
    return ", ".join(words)


def _describe_run_time(view: SessionView, now: datetime) -> str:
    """Say how long earlier runs took and, while the session isn't over, when it is likely to be."""
    run = view.run_time
    if run is None:
        return ""
    return run.sentence if view.phase in OVER else f"{run.sentence}; over by {moment(run.over, now)}"


def _has(view: SessionView) -> str:
    words = [count_text(view.cores, "core"), size(view.memory)]
    sorts = describe_gpus(view.gpu_sorts)
    words += [count_text(view.gpus, "GPU") + (f" ({sorts})" if sorts else "")] if view.gpus else []
    words += [f"{size(view.disk)} of disk"] if view.disk else []
    nodes = f" on each of {len(view.nodes)} nodes" if len(view.nodes) > 1 else ""
    return f"{', '.join(words)}{nodes} for {length(view.duration)}"


def costs(view: SessionView) -> str:
    """Return the costs in words."""
    return ", ".join(describe_price(cost) for cost in view.costs if cost.max)


@command("explain", "sublet explain 3f2a")
@click.argument("session")
def explain(out: Output, session: str) -> None:
    """Say why a session is, or is not, running."""
    from sublet.booking.calls.moves import explain as to_explain  # `ps` doesn't need it

    explained = out.link().do(to_explain(session))
    out.show(
        explained,
        lambda: [f"{explained.session[:8]} is {explained.phase}.", *explained.sentences],
        lambda: explained.sentences,
    )


@command("extend", "sublet extend 3f2a 30m")
@click.argument("session")
@click.argument("by", metavar="TIME")
@key_option
def extend(out: Output, session: str, by: str, key: str | None) -> None:
    """Give a session more time, while there is room."""
    view = out.link().do(sessions.extend(session, by, key=key))
    out.show(view, lambda: [f"{view.short} has until {when(view.until, datetime.now(UTC))}."], lambda: [view.short])


@command("delete", "sublet delete 3f2a")
@click.argument("session", nargs=-1, required=True)
def delete(out: Output, session: tuple[str, ...]) -> None:
    """Remove sessions that are over, with all their files."""
    link = out.link()
    for name in session:
        link.do(sessions.delete(name))
    out.show({"deleted": list(session)}, lambda: (f"{name} is deleted." for name in session), lambda: session)
