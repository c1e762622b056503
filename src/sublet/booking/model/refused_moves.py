"""The error that says why a session can't be changed as requested: what it is doing."""

from __future__ import annotations

from sublet.booking.model.phases import ENDING, OVER, Phase
from sublet.kernel.errors import NotAllowedNow

STATES = {
    Phase.OFFERED: "This offer has not been accepted yet",
    Phase.ACCEPTED: "This session has not started yet",
    Phase.WAITING: "This session has not started yet",
    Phase.PREPARING: "This session is still being prepared",
    Phase.AVAILABLE: "This session is still running",
    Phase.RUNNING: "This session is still running",
    Phase.RELEASING: "This session is already ending",
    Phase.COMPLETED: "This session has already completed",
    Phase.FAILED: "This session has already failed",
    Phase.CANCELLED: "This session has already been cancelled",
    Phase.REJECTED: "This offer was declined, or another one of the same request was accepted",
    Phase.EXPIRED: "This offer has expired",
}
BEING_CANCELLED = "This session is being cancelled"
WORDS: dict[str, str] = {Phase.REJECTED: "declined"}  # where people use another word than the phase
HINTS: dict[str, str] = {
    "deleted": "Cancel it first: sublet cancel {session}",
    Phase.REJECTED: "`sublet cancel {session}` stops it.",
}


def refuse_move(phase: Phase, wanted: Phase | str, session: str, *, is_being_cancelled: bool = False) -> NotAllowedNow:
    """Return the error that says why a session in this phase can't be `wanted` (a phase, or a participle)."""
    state = BEING_CANCELLED if is_being_cancelled and phase not in OVER else STATES[phase]
    word = WORDS.get(wanted, wanted.lower())
    is_gone = phase in ENDING
    message = f"{state}." if is_gone else f"{state}, so it can't be {word}."
    hint = "" if is_gone else HINTS.get(wanted, "").format(session=session[:8])
    return NotAllowedNow(message, hint=hint, phase=phase, wanted=wanted, session=session[:8])
