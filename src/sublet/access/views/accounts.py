"""The views of community accounts, and of the import of an `hpc.json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, kw_only=True)
class AccountView:
    """An account; the second half is shown to operators only, and the private key to nobody."""

    name: str
    description: str = ""
    kind: str = "slurm"  # of its platform
    capacity: int = 0  # concurrent sessions at the site, of all people
    there: int = 0
    waiting: int = 0  # waiting for a turn
    mine: int = 0  # the viewer's own, of those that are there
    problem: str = ""  # why it can't be used at present
    host: str = ""
    port: int = 0
    user: str = ""
    connector: str = ""
    directory: str = ""
    queue: str = ""
    project: str = ""
    qos: str = ""
    options: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    wckey: bool = False
    globus: dict[str, str] = field(default_factory=dict)
    key: str = ""  # the fingerprint of its key
    public: str = ""  # the public key
    certificate: bool = False  # whether the key has one
    host_keys: tuple[str, ...] = ()  # confirmed fingerprints
    created: datetime | None = None
    changed: datetime | None = None
    by: str = ""


@dataclass(frozen=True, kw_only=True)
class AccountList:
    """The accounts."""

    items: tuple[AccountView, ...]


@dataclass(frozen=True, kw_only=True)
class AccountRule:
    """A rule that comes with an account: who may use it, who may not, or a cap for everybody."""

    effect: str  # allow or deny
    who: str
    limits: dict[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AccountAsk:
    """An account to add. Its private key is stored sealed, and never shown again."""

    name: str
    host: str
    user: str
    key: str  # the private key, as ssh-keygen writes it
    passphrase: str = ""  # of the key, if it has one; not stored
    host_keys: tuple[str, ...] = ()  # `ssh-ed25519 AAAA…`, confirmed by somebody
    certificate: str = ""
    port: int = 22
    connector: str = "SlurmConnector"
    directory: str = ".sublet"
    description: str = ""
    queue: str = ""
    project: str = ""
    qos: str = ""
    options: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    capacity: int = 10
    wckey: bool = False
    globus: dict[str, str] = field(default_factory=dict)
    rules: tuple[AccountRule, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AccountChange:
    """Changes to an account; fields that aren't given stay as they are."""

    host: str | None = None
    user: str | None = None
    key: str | None = None
    passphrase: str | None = None
    host_keys: tuple[str, ...] | None = None
    certificate: str | None = None
    port: int | None = None
    directory: str | None = None
    description: str | None = None
    queue: str | None = None
    project: str | None = None
    qos: str | None = None
    options: tuple[str, ...] | None = None
    modules: tuple[str, ...] | None = None
    capacity: int | None = None
    wckey: bool | None = None


@dataclass(frozen=True, kw_only=True)
class HostAsk:
    """The host whose keys are asked for."""

    host: str
    port: int = 22


@dataclass(frozen=True, kw_only=True)
class HostKeyView:
    """A key that a host shows, for a person to confirm."""

    key: str
    fingerprint: str


@dataclass(frozen=True, kw_only=True)
class HostKeyList:
    """The keys that a host shows."""

    items: tuple[HostKeyView, ...]


@dataclass(frozen=True, kw_only=True)
class HpcAsk:
    """An `hpc.json`: name → `hpc` object. Leave passphrases out of it."""

    document: dict[str, dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class NoteView:
    """What became of one field."""

    field: str
    state: str  # taken, left out, refused
    words: str


@dataclass(frozen=True, kw_only=True)
class AccountPlan:
    """What one `hpc` object would become here; `refused` fields must be left out by name."""

    name: str
    fields: dict[str, Any]  # as in AccountAsk
    notes: tuple[NoteView, ...]
    key_path: str = ""
    rules: tuple[AccountRule, ...] = ()
    refused: tuple[str, ...] = ()
    problem: str = ""  # why it can't be an account here; others may still be


@dataclass(frozen=True, kw_only=True)
class AccountPlanList:
    """The plans for all accounts of a document."""

    items: tuple[AccountPlan, ...]


@dataclass(frozen=True, kw_only=True)
class RekeyView:
    """What was sealed again: noun → how many."""

    sealed: dict[str, int]
