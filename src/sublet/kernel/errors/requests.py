"""Errors of requests: malformed, too large, or naming something that doesn't exist."""

from __future__ import annotations

from sublet.kernel.errors.error import SubletError


class BadRequest(SubletError):
    """The request can't be understood: {detail}"""

    hint = "The form of a request is in docs/reference/request.md; `sublet ask --example` prints one."
    status = 400
    exit_code = 2


class BadAmount(BadRequest):
    """{text} is not {what}."""

    hint = "Write {example}."


class BadName(BadRequest):
    """{name} can't be the name of {noun}."""

    hint = "Names begin with a letter and have letters, digits, `.`, `_` and `-`; a lease is NAME#3 or NAME@2026-11-14."


class BadAddress(BadRequest):
    """{address} is not an e-mail address."""

    hint = "Write NAME@DOMAIN; before the @ letters and digits without accents, and any of . _ - + = ~ # & '."


class BadIdentity(BadRequest):
    """There is no kind of identity {kind}."""

    hint = "The kinds are email, oidc, uid, htcondor, and system:NAME for a user name on that system."


class TooLarge(SubletError):
    """The document is larger than {limit}."""

    hint = "Put large inputs in files and name them under data."
    status = 413


class WrongType(SubletError):
    """A document of type {type} can't be read here."""

    hint = "Send application/json or application/yaml."
    status = 415


class NoAnswer(SubletError):
    """There was no answer to the question "{question}": standard input has ended."""

    hint = "Type the command in a terminal."
    status = 400
    exit_code = 2


class NotFound(SubletError):
    """There is no {noun} {name}."""

    hint = "`sublet ps --all` lists your sessions; operators can list everyone's with `sublet ps --everyone`."
    status = 404


class IdTooShort(NotFound):
    """{name} is too short to name a {noun}."""

    hint = "Type at least {least} characters of its id, or more if several ids begin with them."
    exit_code = 2


class Ambiguous(SubletError):
    """{name} could mean several {nouns}: {matches}."""

    hint = "Type more of its id."
    status = 409
    exit_code = 2


class KeyReused(SubletError):
    """The idempotency key {key} was already used for another request."""

    hint = "Send a new key with each new request; the same request under the same key gets the same answer."
    status = 422


class NotAcceptable(SubletError):
    """Nothing here can be sent as {type}."""

    hint = "Accept application/json or application/yaml."
    status = 406


class NotHad(SubletError):
    """This service does not answer {what}."""

    hint = "Its operator can change that: the setting `{setting}`."
    status = 404


class AlreadyThere(SubletError):
    """The {noun} {name} already exists."""

    hint = "Change that one, or choose another name."
    status = 409
