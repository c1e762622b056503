"""Errors of annexes, their leases and their access point."""

from __future__ import annotations

from sublet.kernel.errors.error import SubletError
from sublet.kernel.errors.platforms import PlatformRefused


class NotInvited(SubletError):
    """{platform} is not shared with you."""

    hint = "Its owner can share it: `sublet annex share NAME PERSON`."
    status = 403


class AnnexInUse(SubletError):
    """The annex {name} already has a lease: {leases}."""

    hint = "`sublet annex add {name}` adds nodes under the same name; `sublet annex status {name}` shows its nodes."
    status = 409


class NameTaken(SubletError):
    """The annex {name} already exists."""

    hint = "Choose another name; `sublet annex status` lists them."
    status = 409


class LeaseRefused(SubletError):
    """The resource request is refused: {why}"""

    hint = "`sublet annex create NAME --dry-run` shows each line, and the flag that changes it."
    status = 409


class LeaseOver(SubletError):
    """{lease} ended before the DAG did: {why}"""

    hint = "Submit the DAG again: its rescue DAG continues where it stopped. It may need a longer `--lifetime`."
    status = 409


class NotPending(SubletError):
    """{lease} is no longer waiting: it {state}."""

    hint = "`sublet annex shutdown {lease}` ends it."
    status = 409


class NoLease(SubletError):
    """{name} has no lease that {wanted}."""

    hint = "`sublet annex history {name}` lists its past leases."
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

    hint = "`sublet annex setup --fetch` installs it; no administrator is needed."
    status = 409


class AccessPointFailed(SubletError):
    """The access point did not start: {why}"""

    hint = "`sublet annex setup` says what it needs; its logs are in {logs}."
    status = 503
    exit_code = 3


class AccessPointUnreachable(SubletError):
    """The access point does not answer: {why}"""

    hint = "Sublet retries automatically; `sublet annex setup` shows its state."
    status = 503
    exit_code = 3


class AccessPointRefused(SubletError):
    """The access point refused: {why}"""

    hint = "These are HTCondor's own words."
    status = 409


class BadToken(SubletError):
    """This is not an HTCondor token."""

    hint = "Fetch another."
    status = 400


class NotConfigurable(SubletError):
    """The value of {name} can't be written to HTCondor's configuration: it has more than one line."""

    hint = "Write it on one line."
    status = 400


class NotListening(PlatformRefused):
    """Pilots can't reach this service: {why}"""

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
    """{what} is not available yet."""

    hint = "It is being transferred: try again in a moment."
    status = 503
    exit_code = 3


class BadInvitation(SubletError):
    """This is not an invitation to fetch requests for leases."""

    hint = "The person who leases makes one with `sublet pilot invite SITE --out FILE`; use it unchanged."
    exit_code = 2
