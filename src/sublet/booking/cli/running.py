"""`run`: ask, accept the best offer, follow the output, and exit with the job's exit code."""

from __future__ import annotations

import shlex
import sys
import threading
import time
from datetime import UTC, datetime
from typing import IO, Any

import click

from sublet.booking.calls import offers, sessions
from sublet.booking.cli.asking import KEEP_OFFERS, causes, price, show_answer, split
from sublet.booking.cli.choosing import choose_offer, prefer_option
from sublet.booking.cli.connecting import SOON, advice_for, ready_lines
from sublet.booking.cli.fetching import Destination, check_folder, fetch_all, overwrite_option
from sublet.booking.cli.leaving import settle_interrupt
from sublet.booking.cli.offers import giving_back
from sublet.booking.cli.waiting import ask_service
from sublet.booking.cli.wishes import document, send_files, wishes
from sublet.booking.model.phases import NOT_YET, OVER, Phase
from sublet.booking.views.offers import OfferSetView, OfferView
from sublet.booking.views.sessions import SessionView
from sublet.cli.command import command
from sublet.cli.interrupts import Interrupts
from sublet.cli.keys import key_option
from sublet.cli.output import Output
from sublet.cli.progress import Progress
from sublet.cli.prompts import ask_yes_or_no
from sublet.cli.screen import paint_phase
from sublet.cli.texts import away, length, when
from sublet.client.choosing import find_taken, has_cost_limit, keep_open
from sublet.client.following import Following
from sublet.client.link import Link
from sublet.client.progress import is_progress_wanted
from sublet.client.ranking import Choice
from sublet.client.waiting import follow, patiently
from sublet.kernel.errors import SubletError

EXIT_CODES = {"timeout": 124, "not-started": 127, "cancelled": 130, "out-of-memory": 137}
OWN_CODE = {"out-of-memory", "disk-full"}  # ends with which a program may still have an exit code of its own
LOOK_EVERY = 0.5  # seconds
REPEAT = 60.0  # seconds until the same message is shown again


@command(
    "run",
    "sublet run --cores 2 --time 10m -- python sim.py",
    "sublet run job.yaml --out results",
    "sublet run --step 'prepare=python prepare.py' --step 'train=python train.py' --time 1h",
)
@wishes
@KEEP_OFFERS
@key_option
@prefer_option
@click.option("--detach", "-d", is_flag=True, help="Print its id, and don't follow it.")
@click.option("--yes", "-y", is_flag=True, help="Accept whatever it costs.")
@click.option("--out", "to", metavar="DIR", callback=check_folder, help="Fetch the results into this directory.")
@overwrite_option
@click.option("--keep", is_flag=True, help="With --out: leave it on the system too.")
@click.argument("file", required=False, metavar="[FILE|-]")
@click.argument("words", nargs=-1, metavar="[-- COMMAND…]", type=click.UNPROCESSED)
def run(
    out: Output,
    file: str | None,
    words: tuple[str, ...],
    detach: bool,
    yes: bool,
    to: str | None,
    overwrite: bool,
    keep: bool,
    keep_offers: bool,
    key: str | None,
    prefer: str | None,
    **given: Any,
) -> int:
    """Ask, take the best offer, follow the output, and exit with the job's own exit code.

    The command runs in its own directory, not in this one. Files that it names by a relative path are sent along;
    --data sends more, and --out fetches the results. Afterwards the session's files are removed from a cluster,
    unless you use --keep. If a different file of the same name is in the --out directory, nothing is fetched, unless
    you use --overwrite; `sublet result get` can then fetch the results to another directory.

    With --key, any text of yours, it starts only once: typing the same command again follows the same session.

    Ctrl-C asks whether to cancel the session or leave it running; without a terminal, it keeps running. If it ends
    before you answer, you see its end as usual.

    The exit code is 128 + the signal if a signal ended the job, 124 at its time limit, 127 if it could not be
    started, and 130 if it was cancelled.
    """
    link = out.link()
    asked = send_files(out, link, document(out, *split(file, words), given, local=link.address.local))
    view = ask_service(out, link, offers.ask(asked, keep_offers=keep_offers, firm=True, key=key))
    if not view.offers:
        return show_answer(out, view)
    agreed = yes or has_cost_limit(asked)
    return accept_and_follow(
        out,
        link,
        view,
        detach=detach,
        yes=agreed,
        to=Destination.read(to, keep=keep, overwrite=overwrite),
        prefer=prefer,
    )


def accept_and_follow(
    out: Output,
    link: Link,
    view: OfferSetView,
    *,
    detach: bool,
    yes: bool,
    to: Destination | None,
    prefer: str | None = None,
) -> int:
    """Accept the best of these offers, say why, and follow the session; return the exit code."""
    with Interrupts() as interrupts:
        session = take_best(out, link, view, interrupts, detach=detach, yes=yes, prefer=prefer)
        return follow_to_end(out, link, session, interrupts, detach=detach, to=to)


def take_best(
    out: Output, link: Link, view: OfferSetView, interrupts: Interrupts, *, detach: bool, yes: bool, prefer: str | None
) -> SessionView:
    """Accept the best of these offers and say why; or return the session that was started before under the same key.

    Ctrl-C is held back from the moment that the offer may be accepted until the session is followed.
    """
    if before := find_taken(view):
        interrupts.hold()
        out.note(f"This key was used before, for the session {before.short} on {before.platform}.")
        return link.do(sessions.session(before.id))
    view = keep_open(view)
    with giving_back(link, view):
        choice = choose_offer(out, view, prefer)
        _agree(out, choice.offer, yes)
        interrupts.hold()
        session = _accept(out, link, choice.offer)
    for cause in causes(view):
        out.note(cause)
    if choice.why or not detach:
        _tell_start(out, session, choice)
    return session


def _accept(out: Output, link: Link, offer: OfferView) -> SessionView:
    try:
        return link.do(sessions.accept(offer.id))
    except KeyboardInterrupt:
        out.note(f"{offer.short} may have been accepted; see with: sublet status {offer.short}")
        raise


def follow_to_end(
    out: Output,
    link: Link,
    session: SessionView,
    interrupts: Interrupts,
    *,
    detach: bool,
    to: Destination | None,
) -> int:
    """Follow a session to its end, or with `detach` only print its id; return the exit code."""
    if detach:
        out.show(session, lambda: [session.short], lambda: [session.short])
        out.note(advice_for(session, datetime.now(UTC)))
        interrupts.release()
        return 0
    try:
        return _follow_to_the_end(out, link, session, interrupts, to)
    except KeyboardInterrupt:  # a second Ctrl-C, while the first was being handled
        out.note(f"{session.short} may go on; see with: sublet status {session.short}")
        return 130


def _agree(out: Output, offer: OfferView, yes: bool) -> None:
    """Ask the person to agree to the price, if there is one."""
    costs = price(offer.costs)
    if not costs or yes:
        return
    if not out.can_ask:
        raise SubletError(f"It would cost {costs}.", hint="Accept that with --yes, or set a limit with --max-cost.")
    if not ask_yes_or_no(f"It costs {costs}. Go on?", "Accept that with --yes.", default=True):
        raise click.Abort


def _tell_start(out: Output, session: SessionView, choice: Choice) -> None:
    """Say where the session is, when it starts, and why there."""
    now = datetime.now(UTC)
    start = session.start or now
    word = "is predicted to start" if choice.offer.terms.p90 else "starts"
    begins = f"{word} now" if start - now < SOON else f"{word} {when(start, now)}; waiting"
    out.note(f"session {session.short} on {session.platform} {begins}{f' ({choice.why})' if choice.why else ''}")


def _follow_to_the_end(
    out: Output, link: Link, session: SessionView, interrupts: Interrupts, to: Destination | None
) -> int:
    done, progress = threading.Event(), Progress(wanted=out.for_people)
    readers = [OutputReader(link, session.id, *pair, done, progress) for pair in _streams(out, session)]
    for reader in readers:
        reader.start()
    try:
        interrupts.release()
        session = _watch(out, link, session, done, progress)
    except KeyboardInterrupt:
        progress.end()
        ended = settle_interrupt(out, link, session, interrupts)
        if ended is None:
            return 130
        session = ended
    try:
        interrupts.release()
        for reader in readers:
            reader.join()
        _tell_end(out, session)
        if to is not None:
            fetch_all(out, link, session.id, to)
    except KeyboardInterrupt:
        progress.end()
        rest = (
            f"sublet result get {session.short} --out {shlex.quote(to.directory)}"
            if to
            else f"sublet logs {session.short}"
        )
        out.note(f"{session.short} is over; get what it left with: {rest}")
        return 130
    for reader in readers:
        if reader.error:
            raise reader.error
    return exit_code(session)


def _streams(out: Output, session: SessionView) -> tuple[tuple[str, IO[bytes]], ...]:
    """Return the session's streams and where to copy them; with --json, stdout is kept for the JSON.

    An interactive session prints a server's log, which would scroll its address away.
    """
    if session.kind == "interactive" and not out.verbose:
        return ()
    first = sys.stderr.buffer if out.json else sys.stdout.buffer
    return (("stdout", first), ("stderr", sys.stderr.buffer))


class OutputReader(threading.Thread):
    """A thread that copies one stream of a session as it is printed."""

    def __init__(
        self, link: Link, id: str, stream: str, to: IO[bytes], done: threading.Event, progress: Progress
    ) -> None:
        """Prepare to copy a stream; `done` is set once it has ended."""
        super().__init__(daemon=True)
        self._link, self._following, self._to = link, Following(id, stream), to
        self._done, self._progress = done, progress
        self.error: Exception | None = None

    def run(self) -> None:
        """Copy until the stream has ended."""
        try:
            for piece in follow(self._link, self._following):
                self._progress.end()
                self._to.write(piece)
                self._to.flush()
        except (SubletError, OSError, ValueError) as error:  # raised by the thread that joins this one
            self.error = error
        self._done.set()


class Announced:
    """The recent messages: trouble that comes and goes is not reported each time."""

    def __init__(self) -> None:
        """Start with no messages."""
        self._when: dict[str, float] = {}

    def is_news(self, words: str) -> bool:
        """Whether a message was not shown for a while; it counts as shown now."""
        now = time.monotonic()
        last = self._when.get(words)
        if last is not None and now - last < REPEAT:
            return False
        self._when[words] = now
        return True


def _watch(out: Output, link: Link, session: SessionView, done: threading.Event, progress: Progress) -> SessionView:
    """Poll the session until it is over, and report changes; poll at once when its output has ended."""
    seen = (session.phase, session.condition)
    announced = Announced()
    while session.phase not in OVER:
        if done.wait(LOOK_EVERY):
            done.clear()
        session = patiently(link, sessions.session(session.id))
        if (session.phase, session.condition) != seen:
            seen = (session.phase, session.condition)
            progress.clear()
            is_late = session.phase in NOT_YET and progress.is_over  # its output came before this look
            if not is_late and announced.is_news(f"{session.phase} {session.condition}"):
                _tell(out, session)
        if session.phase in NOT_YET:
            progress.show(_wait_for_start(session))
        elif session.phase == Phase.RELEASING and session.condition:
            progress.show(session.condition)
    progress.end()
    return session


def _wait_for_start(session: SessionView) -> str:
    now = datetime.now(UTC)
    what = session.condition or session.phase.lower()
    return f"{what}; starts {away(session.start, now)}" if session.start and session.start > now else what


def _tell(out: Output, session: SessionView) -> None:
    if session.phase == Phase.RELEASING:  # the progress line shows how far its results are
        return
    soon = session.start is not None and session.start - datetime.now(UTC) < SOON
    if session.condition and not (session.phase in NOT_YET and (soon or not is_progress_wanted())):
        out.note(f"{session.short}: {session.condition}")
    elif session.phase == Phase.AVAILABLE:
        choice = "asks whether to cancel it or to let it go on" if out.can_ask else "lets it go on"
        out.note(f"Ctrl-C here {choice}.")
        for line in ready_lines(session):
            out.note(line)
    else:
        out.detail(f"{session.short}: {session.phase}")


def _tell_end(out: Output, session: SessionView) -> None:
    if out.json:
        out.data(session)
    sentence = session.end.sentence if session.end else ""
    took = f" after {length(session.ended - session.started)}" if session.ended and session.started else ""
    if session.phase != Phase.COMPLETED:
        out.note(f"{session.short} {paint_phase(session.phase, sys.stderr)}{took}: {sentence}")
        if session.phase == Phase.FAILED and session.kind == "interactive":
            out.note(f"See what it printed with: sublet logs --stderr {session.short}")
    else:
        out.detail(f"{session.short} {session.phase}{took}")


def exit_code(session: SessionView) -> int:
    """Return the job's own exit code, or the one that a shell would give."""
    end = session.end
    if end is None:
        return 0 if session.phase == Phase.COMPLETED else 1
    if end.kind == "exited" or (end.kind in OWN_CODE and end.code):
        return end.code or 0
    if end.kind == "signalled" and end.signal:
        return 128 + end.signal
    return EXIT_CODES.get(end.kind, 1)
