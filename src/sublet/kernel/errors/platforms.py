"""Errors of platforms, systems, logins and accounts at a centre."""

from __future__ import annotations

from sublet.kernel.errors.error import SubletError


class PlatformDraining(SubletError):
    """{why}."""

    hint = "Ask again for another platform, or for a time after that."
    status = 409


class NotDraining(SubletError):
    """{platform} is not being drained."""

    hint = "`sublet platform list` shows which platforms are."
    status = 409


class PlatformUnreachable(SubletError):
    """The platform {platform} can't be reached: {why}"""

    hint = "Sublet retries automatically; `sublet platform check {platform}` tries it now."
    status = 503
    exit_code = 3


class PlatformRefused(SubletError):
    """The platform {platform} refused: {why}"""

    hint = "These are the platform's own words; change the request to fit."
    status = 409


class PlatformTimedOut(PlatformUnreachable):
    """{platform} did not answer within {limit}."""

    hint = "It is still being asked: try again in a moment. `sublet platform check {platform}` tries it now."


class PlatformBroken(PlatformUnreachable):
    """The platform {platform} does not work: {why}"""

    hint = "This is a defect of the platform or its plug-in; the service's log has more."


class QueueFull(PlatformUnreachable):
    """{platform} takes no more than {limit} of one person's sessions at a time."""

    hint = "This one continues automatically when another has ended."


class LoginNeeded(SubletError):
    """Sign in to {platform} first."""

    hint = "sublet system login {platform}"
    status = 409
    exit_code = 4


class AccountRefused(LoginNeeded):
    """The service account at {platform} can't sign in: {why}"""

    hint = "The operator has to fix this; sessions wait until then."


class TokenNeeded(LoginNeeded):
    """{platform} needs a token for {address}."""

    hint = "Get one there, and store it here: sublet credential add {address} --token"


class DiskFull(PlatformRefused):
    """The disk of the platform {platform} is full: {why}"""

    hint = "Remove old sessions with `sublet delete`, or ask the operator for room."


class ScratchFull(PlatformRefused):
    """Your scratch in {place} on {platform} has {size}, and {quota} are allowed."""

    hint = "Remove files of yours there, or all of it: sublet place clear {place} --on {platform}"


class UnsafeSite(PlatformRefused):
    """The directory for sessions on {platform} can't be trusted: {why}."""

    hint = "Whoever can write there could run programs as you. Fix it there, or set another `directory` for {platform}."


class BadSystem(SubletError):
    """The file of the system {name} can't be read: {where}: {detail}"""

    hint = "docs/guides/systems.md shows the format; `sublet system remove {name}` removes the file."
    status = 400
    exit_code = 2


class NoOwnLogins(SubletError):
    """A gateway never takes a person's password or code for {platform}."""

    hint = "It signs in with a service account's key, which its operator sets. Use your own Sublet for your own logins."
    status = 403


class BadAccount(SubletError):
    """The account {name} can't be used: {why}."""

    hint = "docs/accounts.md lists its fields; `sublet account import FILE --dry-run` says what becomes of each."
    status = 400
    exit_code = 2


class AccountInUse(SubletError):
    """{count} sessions of the account {name} are not over."""

    hint = "Deny it to everyone with a rule, wait for the sessions or cancel them, then remove it."
    status = 409


class BadKey(SubletError):
    """This can't be the private key of an account: {why}."""

    hint = "Give a private key as ssh-keygen makes it, with its passphrase if it has one."
    status = 400
    exit_code = 2


class PassphraseNeeded(BadKey):
    """This can't be the private key of an account: it has a passphrase, which was not given."""

    hint = "Send its passphrase too; `sublet account add` asks for it."


class UnknownHostKey(SubletError):
    """The host key of {host} has not been confirmed."""

    hint = "Compare its fingerprint with the one that the centre publishes, and confirm it; or give --host-key FILE."
    status = 409


class BadPledge(SubletError):
    """{name} can't be pledged like this: {why}."""

    hint = "sublet pledge add NAME --platform PLATFORM --cores 500"
    status = 400
    exit_code = 2


class BadBroker(SubletError):
    """{name} can't be used as a broker: {why}."""

    hint = "sublet broker add NAME https://broker.example.org --token <token.txt"
    status = 400
    exit_code = 2
