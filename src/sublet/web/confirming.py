"""Confirmation pages: a page of their own that explains the consequences, so that no script is needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from sublet.booking.model.session import Session
from sublet.web.drawing import page
from sublet.web.entry import Visitor

CONFIRMED = "confirmed"  # the form field that a confirmation page adds
MOST_NAMED = 12  # affected sessions or jobs that are listed; the others are counted


@dataclass(frozen=True, slots=True)
class Affected:
    """A session or job that a change would affect; `address` is its page, if it has one."""

    name: str
    detail: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A question that a person has to confirm before a destructive change."""

    title: str  # "End bold#1?"
    effects: tuple[str, ...]  # sentences about the consequences
    button: str  # "End bold#1"
    back: str  # the page to return to
    affected: tuple[Affected, ...] = ()


def is_confirmed(form: Mapping[str, str]) -> bool:
    """Whether a form comes from a confirmation page."""
    return form.get(CONFIRMED) == "yes"


def confirm_page(request: Request, who: Visitor, question: Confirmation, form: Mapping[str, str]) -> Response:
    """Return a confirmation page, whose form repeats the submitted fields."""
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
    """Return the sessions as entries of a confirmation page."""
    return tuple(
        Affected(
            session.name,
            f"{session.id[:8]} of {session.person} on {session.offer.platform}, {session.phase.value.lower()}",
            f"/web/sessions/{session.id}",
        )
        for session in sessions
    )
