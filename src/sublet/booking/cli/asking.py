"""Asking, and accepting an offer: ask, accept."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from sublet.booking.calls import offers, sessions
from sublet.booking.cli.choosing import prefer_option
from sublet.booking.cli.connecting import command_for
from sublet.booking.cli.hints import apply_hints, choose_hints, describe_hints, take_option
from sublet.booking.cli.waiting import ask_service
from sublet.booking.cli.wishes import document, send_files, wishes
from sublet.booking.model.gpu_sorts import describe_gpus
from sublet.booking.model.offer import HINT
from sublet.booking.views.offers import OfferSetView, OfferView, ReasonView, RunWayList
from sublet.booking.views.quotes import QuoteView
from sublet.booking.views.sessions import SessionView
from sublet.cli.command import AFTER, command
from sublet.cli.examples import FIRST
from sublet.cli.keys import key_option
from sublet.cli.output import Output, table
from sublet.cli.texts import away, describe_price, length, moment, size, when, with_local_start
from sublet.client.ranking import sort_views
from sublet.kernel.texts import count_text
from sublet.systems.model.wish import SystemFinding

HEAD = ("OFFER", "WHERE", "START", "TIME", "NODES", "CORES", "MEMORY", "GPUS", "DISK", "PRICE", "TERMS", "WHY")
NOT_OURS = ("--jobs",)  # flags of `system check` that requests don't have
HELD = "urn:held"  # a reason that names what unaccepted offers hold
MONETARY = "urn:ivoa:calycopis:cost:monetary"


KEEP_OFFERS = click.option("--keep-offers", is_flag=True, help="Leave your earlier offers as they are.")


@command(
    "ask",
    "sublet ask job.yaml",
    "sublet ask --explain-ways --notebook analysis.ipynb",
    "sublet ask --step 'python prepare.py' --step 'python train.py' --time 1h",
    "sublet ask --cores 4 --memory 8GiB --time 2h --start 'tomorrow 09:00-12:00' -- python sim.py",
)
@wishes
@KEEP_OFFERS
@key_option
@prefer_option
@take_option
@click.option("--example", is_flag=True, help="Print an example of a request, and do nothing.")
@click.option("--explain-ways", is_flag=True, help="Show all ways to run it, and why others aren't; ask nothing.")
@click.option(
    "--show", is_flag=True, help="Of a system (--platform): show each part, who said so, and its flag; ask nothing."
)
@click.argument("file", required=False, metavar="[FILE|-]")
@click.argument("words", nargs=-1, metavar="[-- COMMAND…]", type=click.UNPROCESSED)
def ask(
    out: Output,
    example: bool,
    explain_ways: bool,
    show: bool,
    keep_offers: bool,
    key: str | None,
    prefer: str | None,
    take: tuple[int, ...],
    file: str | None,
    words: tuple[str, ...],
    **given: Any,
) -> int:
    """When and where can this run? Shows offers, or says why not.

    Write the request in a FILE, or give options and a command after --. Options override the file.

    You have a few minutes to accept an offer. Booked offers are held for you until then; in a shared queue nothing is
    held. If there isn't room for both, your earlier offers are withdrawn.

    Hints say what your earlier runs of the same program used; press a digit, or use --take, to ask again with a hint.
    """
    if example:
        click.echo(FIRST, nl=False)
        return 0
    if show:
        return _show_request(out, *split(file, words), given)
    link = out.link()
    asked = send_files(out, link, document(out, *split(file, words), given, local=link.address.local))
    if explain_ways:
        return show_ways(out, link.do(offers.explain_ways(asked)))
    view = ask_service(out, link, offers.ask(asked, keep_offers=keep_offers, key=key))
    if not take:
        code = show_answer(out, view, prefer)
        take = tuple(choose_hints(out, view))
        if not take:
            return code
    better = apply_hints(asked, view, take)
    if view.offers:
        link.do(offers.reject_set(view.id))
    return show_answer(out, ask_service(out, link, offers.ask(better, keep_offers=keep_offers)), prefer)


def show_ways(out: Output, view: RunWayList) -> int:
    """Show every way on every platform; return exit code 1 if none is possible."""
    rows = [(way.platform, way.way, "yes" if way.possible else "no", way.why) for way in view.items]
    out.show(view, lambda: table(("WHERE", "WAY", "POSSIBLE", "WHY"), rows), lambda: _name_ways(view))
    return 0 if any(way.possible for way in view.items) else 1


def _name_ways(view: RunWayList) -> Iterator[str]:
    yield from (f"{way.platform} {way.way}" for way in view.items if way.possible)


def _show_request(out: Output, file: str | None, words: tuple[str, ...], given: dict[str, Any]) -> int:
    """Show the whole request as its system would see it; nobody signs in, and nothing is asked or held."""
    from sublet.kernel.home import sublet_home
    from sublet.systems.cli.outlines import SIZES, show_check, today, wish_in  # only needed here
    from sublet.systems.model.outline import outline
    from sublet.systems.own import Systems

    asked = document(out, file, words, {**given, "stay": True}, local=True)
    name = asked.get("platform", "")
    if not name:
        raise click.UsageError("--show wants --platform, and a system of `sublet system list`.")
    system = Systems(sublet_home().systems).find(str(name))
    parts = {*SIZES, "queue", "project", "constraint"}
    sources = dict.fromkeys({field for field in parts if given[field] is None}, file or "")
    plan = outline(system, wish_in(asked), sources=sources, today=today())
    return show_check(out, system, replace(plan, rows=tuple(_list_session_options(plan.rows))))


def _list_session_options(rows: Sequence[SystemFinding]) -> Iterator[SystemFinding]:
    """Yield the rows for options of a session; errors and warnings of other rows point to the system's file."""
    for row in rows:
        if row.flag not in NOT_OURS:
            yield row
        elif row.state in ("error", "warning"):
            yield replace(row, flag="the system's file")


def split(file: str | None, words: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """Separate the file from the command, which comes after --."""
    ctx = click.get_current_context()
    after: int | None = ctx.meta.get(AFTER)
    if after is None:
        if words:
            command = shlex.join((*((file,) if file is not None else ()), *words))
            raise click.UsageError(f"Write -- before the command: -- {command}", ctx)
        return file, words
    typed = (*((file,) if file is not None else ()), *words)
    return (typed[0] if len(typed) > after else None), typed[len(typed) - after :]


def show_answer(out: Output, view: OfferSetView, prefer: str | None = None) -> int:
    """Show a YES or a NO, and return the exit code."""
    now = datetime.now(UTC)
    view = sort_views(view, prefer or "")
    if view.offers:
        out.show(view, lambda: draw_offers(view.offers, now), lambda: (offer.short for offer in view.offers))
    else:
        out.show(view, lambda: describe_no(view.reasons, now), lambda: ())
    if out.for_people:
        for line in advice(view, now):
            out.note(line)
    return 0 if view.offers else 1


def draw_offers(views: Sequence[OfferView], now: datetime) -> list[str]:
    """Draw offers as a table."""
    rows = [
        (
            view.short,
            describe_place(view),
            _start(view, now),
            length(view.duration),
            str(len(view.nodes)) if len(view.nodes) > 1 else "",
            str(view.cores),
            size(view.memory),
            str(view.gpus or ""),
            size(view.disk) if view.disk else "",
            price(view.costs),
            f"{view.terms.words}, login needed" if view.needs_login else view.terms.words,
            with_local_start(view.why, view.start, now),
        )
        for view in views
    ]
    return table(HEAD, rows, keep=("START", "PRICE"), least=("TERMS", "MEMORY", "TIME", "NODES"))


def describe_place(view: OfferView | SessionView) -> str:
    """Return the route or platform of an offer or session, and its pledge if it has one."""
    place = view.terms.route or view.platform
    return f"{place} ({view.pledge})" if view.pledge else place


def _start(view: OfferView, now: datetime) -> str:
    if view.start <= now + timedelta(seconds=5) and view.terms.kind == "booked":
        return "now"
    if view.terms.p10 and view.terms.p90:
        start = moment(view.start, now)
        bounds = (moment(view.terms.p10, now), moment(view.terms.p90, now))
        day, _, _ = start.rpartition(" ")
        first, last = (bound.removeprefix(f"{day} ") for bound in bounds)  # the same day isn't repeated
        return f"{start} ({first} to {last})"
    return when(view.start, now)


def price(costs: Sequence[QuoteView]) -> str:
    """Return the costs in money, as text."""
    return ", ".join(describe_price(cost) for cost in costs if cost.type == MONETARY and cost.max)


def advice(view: OfferSetView, now: datetime) -> list[str]:
    """Return notes on an answer, and the command to type next."""
    if not view.offers:
        return ["", "Nothing is held."]
    standing = describe_standing(view.offers, now)
    take = f"Take one with: sublet accept {view.offers[0].short}"
    lines = ["", f"{count_text(len(view.offers), 'offer')}, {standing}. {take}"]
    unproven = {describe_place(offer) for offer in view.offers if offer.terms.p90 and offer.terms.samples < 20}
    lines += [f"note: {name}: predicted starts have no track record yet" for name in sorted(unproven)]
    sorts = {describe_place(offer): describe_gpus(offer.gpu_sorts) for offer in reversed(view.offers)}
    lines += [f"note: {place}: GPUs: {words}" for place, words in sorted(sorts.items()) if words]
    lines += describe_run_times(view.offers, now)
    staging = {
        offer.platform: offer.staging.sentence for offer in view.offers if offer.staging and offer.staging.sentence
    }
    lines += [f"note: {name}: staging: {words}" for name, words in staging.items()]
    shut = dict.fromkeys(offer.platform for offer in view.offers if offer.needs_login)
    lines += [f"note: {name}: login needed: sublet system login {name}" for name in shut]
    lines += [f"note: {note}" for note in view.notes]
    others = [reason for reason in view.reasons if reason.kind != HINT]
    lines += [f"note: {sentence(reason, now)}{_remedy(reason)}" for reason in others]
    return lines + describe_hints(view)


def describe_run_times(offers: Sequence[OfferView], now: datetime) -> list[str]:
    """Say how long the session is likely to run on each platform, and when it would be over by the first offer."""
    first: dict[tuple[str, str], str] = {}
    for offer in offers:
        if run := offer.run_time:
            over = moment(run.over, now).removeprefix("today ")
            first.setdefault((describe_place(offer), run.sentence), f"likely to run {run.sentence}; over by {over}")
    return [f"note: {place}: {words}" for (place, _), words in first.items()]


def describe_standing(offers: Sequence[OfferView], now: datetime) -> str:
    """Say until when offers can be accepted, and which of them are held; in a shared queue none are."""
    held = [offer.expires for offer in offers if offer.terms.is_held]
    others = [offer.expires for offer in offers if not offer.terms.is_held]
    if not held:
        return f"open until {_between(others, now)}; nothing is held" if others else "not held"
    if not others:
        return f"held until {_between(held, now)}"
    rest = "for the other" if len(others) == 1 else "for the others"
    return f"{len(held)} of them held until {_between(held, now)}; {rest} nothing is held"


def _between(times: Sequence[datetime], now: datetime) -> str:
    """Return a time as text, or the first and the last of several."""
    first, last = when(min(times), now), when(max(times), now)
    return first if first == last else f"{first} or longer, the last until {last}"


def causes(view: OfferSetView) -> list[str]:
    """Return notes on the unaccepted offers that prevent an earlier start."""
    return [f"note: {reason.message}{_remedy(reason)}" for reason in view.reasons if reason.kind == HELD]


def _remedy(reason: ReasonView) -> str:
    return f" Release your own offers with: {reason.nearest}" if reason.kind == HELD and reason.nearest else ""


def sentence(reason: ReasonView, now: datetime) -> str:
    """Return a reason's message with its platform, and with the age of the facts behind it."""
    starts = reason.message.startswith(f"{reason.platform} ")  # most messages do; then the name isn't repeated
    where = f"{reason.platform}: " if reason.platform and not starts else ""
    if reason.as_of is None:
        return f"{where}{reason.message}"
    seen = f"as seen {away(reason.as_of, now)}; refresh with: sublet system probe {reason.platform}"
    return f"{where}{reason.message} ({seen})"


def describe_no(reasons: Sequence[ReasonView], now: datetime) -> list[str]:
    """Draw a NO: each reason, with the nearest possible alternative."""
    lines = ["NO"]
    for reason in reasons:
        lines.append(f"  {sentence(reason, now)}")
        details = [("field", reason.field), ("wanted", reason.wanted), ("limit", reason.limit)]
        facts = ", ".join(f"{name} {value}" for name, value in details if value)
        lines += [f"    {facts}"] if facts else []
        lines += [f"    possible: {reason.nearest}"] if reason.nearest else []
    return lines


@command("accept", "sublet accept 3f2a")
@click.argument("offer")
def accept(out: Output, offer: str) -> None:
    """Accept an offer; the others of its set are released."""
    link = out.link()
    try:
        view = link.do(sessions.accept(offer))
    except KeyboardInterrupt:
        out.note(f"{offer} may have been accepted; see with: sublet status {offer}")
        raise
    start = when(view.start, datetime.now(UTC))
    out.show(view, lambda: [f"{view.short} is accepted: on {describe_place(view)}, {start}."], lambda: [view.short])
    if out.for_people:
        out.note(f"{'Connect to it' if view.kind == 'interactive' else 'Follow it'} with: sublet {command_for(view)}")
