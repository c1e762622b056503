"""The messages to hooks: their content, their signature, and its verification."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import datetime, timedelta
from typing import Any

from sublet.booking.model.ends import end_sentence
from sublet.booking.model.events import Event, EventKind
from sublet.booking.model.session import Session
from sublet.kernel.views import instant_text
from sublet.notices.model.hooks import Hook

SIGNATURE = "Sublet-Signature"
DELIVERY = "Sublet-Delivery"
TOLERANCE = timedelta(minutes=5)
LONGEST_LINE = 200
STATES = {  # words for a mail if the kind isn't a state
    EventKind.APP_REVOKED: "notified that its app was revoked",
    EventKind.DRAINING: "notified that its platform is being drained",
    EventKind.MOVED: "given another time",
}


def message(hook: Hook, delivery: str, event: Event, session: Session | None) -> dict[str, Any]:
    """Return the message about one event."""
    content: dict[str, Any] = {
        "delivery": delivery,
        "hook": hook.id,
        "event": {
            "id": event.id,
            "time": instant_text(event.time),
            "kind": event.kind,
            "phase": event.phase,
            "detail": event.detail,
        },
        "session": {"id": event.session},
    }
    if session:
        content["session"] |= {
            "name": session.name,
            "kind": session.kind,
            "platform": session.offer.platform,
            "phase": session.phase.value,
            "person": session.person,
            "end": end_sentence(session.end) if session.end else "",
        }
    return content


def encode(content: dict[str, Any]) -> bytes:
    """Return a message as the bytes that are sent."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()


def signature(secret: str, at: datetime, body: bytes) -> str:
    """Return the header that proves who sent a body, and when: `t=SECONDS,v1=HMAC-SHA256 of "SECONDS.BODY"`."""
    seconds = int(at.timestamp())
    return f"t={seconds},v1={_digest(secret, seconds, body)}"


def is_signed(secret: str, header: str, body: bytes, now: datetime, tolerance: timedelta = TOLERANCE) -> bool:
    """Whether a body was recently signed with this secret; for receivers."""
    parts = dict(part.strip().partition("=")[::2] for part in header.split(","))
    seconds = parts.get("t", "")
    if not (seconds.isascii() and seconds.isdigit()) or abs(now.timestamp() - int(seconds)) > tolerance.total_seconds():
        return False
    return hmac.compare_digest(_digest(secret, int(seconds), body).encode(), parts.get("v1", "").encode())


def letter(hook: Hook, event: Event, session: Session | None) -> tuple[str, str]:
    """Return the subject and text of a mail about one event."""
    name = _line(session.name if session else event.session[:8])
    state = STATES.get(event.kind) or event.kind.fact.replace("-", " ")
    lines = [f"The session {event.session[:8]} ({name}) was {state} at {event.time:%Y-%m-%d %H:%M:%S} UTC."]
    if event.kind in STATES:
        lines += [_line(event.detail)]
    if session:
        lines += [_line(end_sentence(session.end)) if session.end else f"It is on {session.offer.platform}."]
    lines += ["", f"Details: sublet status {event.session[:8]}"]
    lines += [f"You asked for this notification. To stop it: sublet notify remove {hook.id[:8]}"]
    return _line(f"[sublet] {name}: {state}"), "\n".join(lines) + "\n"


def _digest(secret: str, seconds: int, body: bytes) -> str:
    return hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()


def _line(text: str) -> str:
    """Return someone's text on one line of limited length."""
    return " ".join(text.split())[:LONGEST_LINE]
