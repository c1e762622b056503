"""Errors of annexes, their leases and their access point."""

from __future__ import annotations

from sublet.kernel.errors.error import SubletError
from sublet.kernel.errors.platforms import PlatformRefused


class NotInvited(SubletError):
    """{platform} is not shared with you."""

    hint = "Its owner can share it: `sublet annex share NAME PERSON`."
    status = 403


class AnnexInUse(SubletError):
    """The annex {name} has a lease already: {leases}."""

    hint = "`sublet annex add {name}` puts more under the same name; `sublet annex status {name}` shows what is there."
    status = 409


class NameTaken(SubletError):
    """There is an annex {name} already."""

    hint = "Choose another name; `sublet annex status` lists them."
    status = 409


class LeaseRefused(SubletError):
    """The resource request is refused: {why}"""

    hint = "`sublet annex create NAME --dry-run` shows each line, and the flag that changes it."
    status = 409


class LeaseOver(SubletError):
    """{lease} ended before the DAG did: {why}"""

    hint = "Submit the DAG again: its rescue DAG goes on where it was. It may need a longer `--lifetime`."
    status = 409


class NotPending(SubletError):
    """{lease} no longer waits: it {state}."""

    hint = "`sublet annex shutdown {lease}` ends it."
    status = 409


class NoLease(SubletError):
    """{name} has no lease that {wanted}."""

    hint = "`sublet annex history {name}` lists those that it had."
    status = 409


class NotUpYet(SubletError):
    """Not all nodes of {name} have reported after {seconds} s."""

    hint = "Wait longer, or see why with `sublet annex status {name}`."
    status = 409


class PersonalOnly(SubletError):
    """An annex belongs to one person, and is made by their own service; this is a gateway."""

    hint = "Run Sublet as yourself, where you have an account: `sublet annex create NAME`."
    status = 409


class NoHTCondor(SubletError):
    """There is no HTCondor on this machine."""

    hint = "`sublet annex setup` brings it; no administrator is needed."
    status = 409


class AccessPointFailed(SubletError):
    """The access point did not start: {why}"""

    hint = "`sublet annex setup` says what it needs; its logs are in {logs}."
    status = 503
    exit_code = 3


class AccessPointUnreachable(SubletError):
    """The access point does not answer: {why}"""

    hint = "It is tried again by itself; `sublet annex setup` says how it is."
    status = 503
    exit_code = 3


class AccessPointRefused(SubletError):
    """The access point refused: {why}"""

    hint = "These are HTCondor's own words."
    status = 409


class BadToken(SubletError):
    """This is no token of HTCondor's."""

    hint = "Fetch another."
    status = 400


class NotConfigurable(SubletError):
    """The value of {name} can't stand in HTCondor's configuration: it has more than one line."""

    hint = "Write it on one line."
    status = 400


class NotListening(PlatformRefused):
    """Pilots can't ask this service: {why}"""

    hint = "Set `address` and `endpoint` in the section [annex] of sublet.toml; `sublet doctor` says what is missing."


class PilotRefused(SubletError):
    """{why}"""

    hint = "A pilot claims its place in a lease once, with the token that its job came with."
    status = 403


class ReleaseRefused(SubletError):
    """That release of HTCondor can't be used: {why}"""

    hint = "Set `release` and `release_sha256` in the section [annex] of sublet.toml, or install HTCondor's package."
    status = 409


class NotYet(SubletError):
    """{what} is not there yet."""

    hint = "It is being brought: ask again in a moment."
    status = 503
    exit_code = 3


class BadInvitation(SubletError):
    """This is no invitation to fetch requests for leases."""

    hint = "Who leases makes one with `sublet pilot invite SITE --out FILE`; it is used as it is."
    exit_code = 2
