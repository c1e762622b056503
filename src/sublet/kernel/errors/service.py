"""Errors of the service itself: its home, settings, database, backups and keys."""

from __future__ import annotations

from sublet.kernel.errors.error import SubletError


class ClientClosed(SubletError, RuntimeError):
    """This client was closed, and can't be used any more."""

    hint = "Use it inside its `with` or `async with`, before `close()`, or make another one."
    exit_code = 2


class ServiceFull(SubletError):
    """The service's disk is full."""

    hint = "Its operator has to free space in its SUBLET_HOME; `sublet doctor` there says how much is left."
    status = 503
    exit_code = 3


class ServiceUnreachable(SubletError):
    """No Sublet service answers at {address}: {why}"""

    hint = "`sublet up` starts one; `sublet doctor` says what is missing."
    status = 503
    exit_code = 3


class UnknownAnswer(SubletError):
    """This version of Sublet doesn't understand the answer: it is {why}."""

    hint = "Check the address, and that no proxy answers instead of the service; `sublet doctor` compares versions."
    status = 502
    exit_code = 3


class UnusableHome(SubletError):
    """SUBLET_HOME ({home}) can't be created or written: {why}."""

    hint = "Make a directory that you can write: mkdir -m 700 DIR, then SUBLET_HOME=DIR."
    exit_code = 2


class UnsafeHome(SubletError):
    """SUBLET_HOME ({home}) can't be trusted: {why}."""

    hint = "Whoever can write there could run programs as you. Make a new one: mkdir -m 700 DIR, then SUBLET_HOME=DIR."
    exit_code = 2


class UnsafeDirectory(SubletError):
    """The directory {place} can't be trusted: {why}."""

    hint = "Whoever can write there could run programs as you. Name one of your own: mkdir -m 700 DIR."
    exit_code = 2


class BadSecretKey(SubletError):
    """The file {file} is not a key: it has {size} bytes instead of {wanted}."""

    hint = "It was cut off, by a full disk or a crash. Restore it from a backup; if you remove it, links in use end."
    status = 503


class NotHere(SubletError):
    """Sublet's service doesn't start here: {why}"""

    hint = "{advice}"
    exit_code = 1


class AlreadyServed(SubletError):
    """Sublet's service doesn't start here: another one already serves {socket}"""

    hint = "`sublet down` stops it; or give this one another SUBLET_HOME."
    exit_code = 1


class ServerNotInstalled(SubletError):
    """{what} needs the parts of Sublet that run a service, and only its client is installed here."""

    hint = "pip install 'sublet[server]'; or use a service that runs elsewhere: sublet login URL"
    exit_code = 1


class BadSettings(SubletError):
    """The settings in {file} can't be used: {detail}"""

    hint = "docs/reference/settings.md lists every setting with an example."
    exit_code = 2


class NotBackedUp(SubletError):
    """No backup was made: {why}."""

    hint = "Nothing was changed; `sublet doctor` checks the service."
    exit_code = 1


class NotRestored(SubletError):
    """{file} was not restored: {why}."""

    hint = "Nothing was changed. Try another backup."
    exit_code = 1


class LostDatabase(SubletError):
    """The database {where} is not as the service left it: {why}."""

    hint = "`sublet doctor` checks it."
    exit_code = 3


class BrokenStore(SubletError):
    """The database {where} can't be used: {why}"""

    hint = "`sublet doctor` checks it."
    status = 503
    exit_code = 3


class NoMasterKey(SubletError):
    """There is no master key, and {purpose} must not be stored without one."""

    hint = (
        "Make one with `sublet account key FILE`, outside SUBLET_HOME, and name it in sublet.toml: "
        "master_key = FILE. Or give it as systemd's credential sublet-master-key."
    )
    status = 503


class BadMasterKey(SubletError):
    """The master key {file} can't be used: {why}."""

    hint = "It is a file of the service's own user, mode 600, outside SUBLET_HOME: `sublet account key FILE` makes one."
    status = 503
    exit_code = 2


class NotSealedHere(SubletError):
    """The stored secret for {purpose} can't be decrypted: {why}."""

    hint = (
        "Put the master key that encrypted it back into the key file, after the newer ones; or store the secret again."
    )
    status = 503


class TooManyConnections(SubletError):
    """Too many connections are open."""

    hint = "Try again in a few seconds. An operator can raise the limits: [connections] in sublet.toml."
    status = 503
    exit_code = 3


class RequestTooSlow(SubletError):
    """The request did not arrive in time."""

    hint = "Send it again. An operator can allow more time: request_timeout under [connections] in sublet.toml."
    status = 408


class ServiceShort(SubletError):
    """The service's machine is short of resources at the moment: {what}."""

    hint = "Try again in a few seconds."
    status = 503
    exit_code = 3
