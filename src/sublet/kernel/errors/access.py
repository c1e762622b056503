"""Errors of authorization."""

from __future__ import annotations

from sublet.kernel.errors.error import SubletError


class NotYours(SubletError):
    """This {noun} belongs to someone else."""

    hint = "Only the person who asked for it can see or change it."
    status = 403


class ContentsPrivate(SubletError):
    """Only its owner, {person}, can read the output and results of the session {session}."""

    hint = "Ask its owner. Operators can read it if the service's settings have `operators_read = true`."
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
    """You may already use the {noun} {name}: {why}."""

    hint = "`sublet access` shows everything that you may use."
    status = 409


class AlreadyDecided(SubletError):
    """This request for access was already {state} by {by}."""

    hint = "`sublet access list --all` shows all decisions; `sublet rule list` shows the rules."
    status = 409


class TooManyOpen(SubletError):
    """You already have {count} open requests for access."""

    hint = "Wait until an operator has decided some of them: `sublet access list` shows them."
    status = 409
