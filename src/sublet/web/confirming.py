"""A question before something is lost: what it would do, on a page of its own, so that no script is needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from sublet.booking.model.session import Session
from sublet.web.drawing import page
from sublet.web.entry import Visitor

CONFIRMED = "confirmed"  # the field that a confirmation page adds to the form
MOST_NAMED = 12  # of the sessions or jobs that are affected; the others are counted


@dataclass(frozen=True, slots=True)
class Affected:
    """A session or job that a change would touch; `address` is its page, if it has one."""

    name: str
    detail: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What a person is asked before something is lost."""

    title: str  # "End bold#1?"
    effects: tuple[str, ...]  # sentences
    button: str  # "End bold#1"
    back: str  # the address to return to
    affected: tuple[Affected, ...] = ()


def is_confirmed(form: Mapping[str, str]) -> bool:
    """Whether a form comes from a confirmation page."""
    return form.get(CONFIRMED) == "yes"


def confirm_page(request: Request, who: Visitor, question: Confirmation, form: Mapping[str, str]) -> Response:
    """Ask, with a form that repeats what was sent."""
    repeated = {name: value for name, value in form.items() if name not in ("token", CONFIRMED)}
    affected = question.affected
    return page(
        request,
        "confirm.html",
        who,
        question=question,
        affected=affected[:MOST_NAMED],
        more=max(len(affected) - MOST_NAMED, 0),
        repeated={**repeated, CONFIRMED: "yes"},
    )


def describe_affected_sessions(sessions: Iterable[Session]) -> tuple[Affected, ...]:
    """These sessions, as a question names them."""
    return tuple(
        Affected(
            session.name,
            f"{session.id[:8]} of {session.person} on {session.offer.platform}, {session.phase.value.lower()}",
            f"/web/sessions/{session.id}",
        )
        for session in sessions
    )
