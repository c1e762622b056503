"""Errors of who may do what."""

from __future__ import annotations

from sublet.kernel.errors.error import SubletError


class NotYours(SubletError):
    """This {noun} belongs to someone else."""

    hint = "Only the person who asked for it can see or change it."
    status = 403


class ContentsPrivate(SubletError):
    """What the session {session} prints and leaves is for its owner, {person}, alone."""

    hint = "Its owner can fetch it. Operators may read it where the service's settings say `operators_read = true`."
    status = 403


class OperatorsOnly(SubletError):
    """Only an operator can do this."""

    hint = "On the service's own machine, its owner is one: use the command line there."
    status = 403


class NotAllowed(SubletError):
    """{why}"""

    hint = "{how}"
    status = 403


class AlreadyAllowed(SubletError):
    """You may use the {noun} {name} already: {why}."""

    hint = "`sublet access` shows all that you may use."
    status = 409


class AlreadyDecided(SubletError):
    """This request for access was {state} already, by {by}."""

    hint = "`sublet access list --all` shows what was decided; `sublet rule list` shows the rules."
    status = 409


class TooManyOpen(SubletError):
    """You have {count} requests for access open already."""

    hint = "Wait until an operator has decided on some: `sublet access list` shows them."
    status = 409
