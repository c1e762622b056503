"""Errors of sessions, their data and their results."""

from __future__ import annotations

from sublet.kernel.errors.error import SubletError


class NotAllowedNow(SubletError):
    """This session is {phase} and can't be {wanted} now."""

    hint = "`sublet status {session}` shows where it stands."
    status = 409


class ScratchInUse(SubletError):
    """The session {session} uses your scratch in {place}."""

    hint = "Empty it when the session is over, or cancel that: sublet cancel {session}"
    status = 409


class NoRoom(SubletError):
    """The session can't be extended to {until}: the next booking starts at {free_until}."""

    hint = "Ask for less, or for a new session."
    status = 409


class NotHandable(SubletError):
    """{session} can't be handed over: it needs {what}, which only its owner can use."""

    hint = "Your colleague can ask for a session of their own."
    status = 409


class SeriesHasNoRoom(SubletError):
    """{missed} of {count} sessions have no room; the first of them at {first}: {why}"""

    hint = "Leave out that day (--except), take those that fit (--some), or choose other hours. Nothing is held."
    status = 409


class NoSeatLeft(SubletError):
    """No seat of {name} is free."""

    hint = "Its organiser may have one for you, or make another booking."
    status = 409


class SeriesChanged(SubletError):
    """The booking has changed."""

    hint = "Look at it with `sublet booking show`, and try again."
    status = 409


class OverCostLimit(SubletError):
    """The session can't be extended to {until}: {why}"""

    hint = "Extend it by less, or ask for a new session with a higher limit."
    status = 409


class DataNotThere(SubletError):
    """The data {name} could not be fetched from {location}: {why}"""

    hint = "Check that the address can be read from the platform's machine."


class DataNotSent(SubletError):
    """The result {name} could not be sent to {location}: {why}"""

    hint = "Check the address, and that a credential for it lets you write there: sublet credential list."
    status = 502


class BadTree(SubletError):
    """These files can't be an app: {why}."""

    hint = "An app is plain files below one directory, and links between them; large data belongs under data."
    status = 400
    exit_code = 2


class NotChangeable(SubletError):
    """The {path} of a session can't be changed by {kind}."""

    hint = "`meta.options` of the session lists what can be: its phase, and schedule.available.duration."
    status = 409


class NotOverYet(SubletError, TimeoutError):
    """The session {session} is still {phase} after {seconds} s."""

    hint = "Wait longer, or see why with `sublet explain {session}`."
    status = 409

    @property
    def session(self) -> str:
        """The id of the session, which continues: `client.session(error.session)`."""
        return str(self.values.get("id") or self.values.get("session", ""))


class InTheWay(SubletError):
    """Nothing was fetched, because {files} {verb} there already."""

    hint = (
        "Fetch into another directory: sublet result get {session} --out DIR; "
        "or replace what is there: sublet result get {session} --out {directory} --overwrite"
    )
    status = 409


class Changed(SubletError):
    """{path} has changed since the download began."""

    hint = "Fetch it from its beginning."
    status = 412


class SessionUnreachable(SubletError):
    """The application in the session {session} does not answer: {why}"""

    hint = "It may be starting or ending: `sublet status {session}`."
    status = 502
    exit_code = 3


class SessionElsewhere(SubletError):
    """This session is at another broker, and is reached at {location}"""

    hint = "Connect to that address with a program for it."
    status = 409
