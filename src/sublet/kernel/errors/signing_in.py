"""Errors of tokens, codes, second factors and sign-in."""

from __future__ import annotations

from datetime import timedelta

from sublet.kernel.errors.error import SubletError
from sublet.kernel.errors.requests import BadRequest
from sublet.kernel.texts import describe_duration


class NotSignedIn(SubletError):
    """This needs a token."""

    hint = "Get one with `sublet token` and send it as `Authorization: Bearer …`."
    status = 401
    exit_code = 4


class TokenRefused(SubletError):
    """Your token is not valid here: {why}."""

    hint = "Get a new one where it came from, for this service."
    status = 401
    exit_code = 4


class NoAddress(SubletError):
    """This service has no public address."""

    hint = 'Its operator sets it: url = "https://broker.example.org"'
    status = 409


class Blocked(SubletError):
    """An operator has blocked {person}; signing in again does not help."""

    hint = "{ask}"
    status = 403


class TooMany(SubletError):
    """Too many attempts: wait {wait}."""

    hint = "Nothing was done. An operator can change the limits: [throttle] in sublet.toml."
    status = 429

    def __init__(self, message: str = "", *, hint: str = "", **values: object) -> None:
        """Say how long to wait, in words too; a message can have {wait} in it."""
        seconds = values.setdefault("seconds", 60)
        wait = describe_duration(timedelta(seconds=seconds), units=2) if isinstance(seconds, int) else "a while"
        super().__init__(message.replace("{wait}", wait), hint=hint, **(values | {"wait": wait}))


class FactorNeeded(SubletError):
    """This needs a code of your second factor."""

    hint = "Type the code that your authenticator shows, or one of your recovery codes."
    status = 403
    exit_code = 4


class NotConfirmed(SubletError):
    """{provider} did not confirm who you are: {why}"""

    hint = "Begin again on the page to sign in."
    status = 403


class ProviderUnreachable(SubletError):
    """{provider} can't be asked who you are: {why}"""

    hint = "Try again in a while, or sign in by e-mail; the operator finds more in the service's log."
    status = 503
    exit_code = 3


class OutOfScope(SubletError):
    """This token is for `{scope}` only, and this needs `{needed}`."""

    hint = "`sublet token make --scope {needed}` makes one that may."
    status = 403


class BadScope(BadRequest):
    """{scope} is not a scope."""

    hint = "Scopes are, each including those before it: {words}."


class WrongCode(SubletError):
    """This code is wrong, was used, was tried too often, or is too old."""

    hint = "Only the newest code counts, for ten minutes and five tries; ask for another."
    status = 403
    exit_code = 4


class NotAGateway(SubletError):
    """This is a personal service: it has no other people."""

    hint = "`sublet serve --gateway` runs a gateway; `sublet login URL` signs in to one."
    status = 409


class Forged(SubletError):
    """This form did not come from a page of this service, or the page is too old."""

    hint = "Go back, load the page again, and send it once more."
    status = 403


class NotPrivate(SubletError):
    """A password or a code that is typed here would travel unprotected."""

    hint = "Open this page on the service's own machine, or by https; or sign in there with `sublet system login`."
    status = 403


class NotAsked(SubletError):
    """This question is out of date: {why}"""

    hint = "Reload the page."
    status = 409


class MailNotSent(SubletError):
    """The mail to {address} could not be sent: {why}"""

    hint = "An operator sets how mail is sent under [mail] in the settings."
    status = 503
    exit_code = 3
