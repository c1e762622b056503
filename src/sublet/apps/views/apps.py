"""The views of apps, versions and reviews."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ProposeAsk:
    """A repository to propose: its branch (default: its own), a commit of it (default: the newest), and a name."""

    repository: str
    branch: str = ""
    commit: str = ""
    name: str = ""
    maintainer: str = ""  # a generic image of the operator, for code without its own


@dataclass(frozen=True, kw_only=True)
class VersionView:
    """One version of an app, decided on as a whole."""

    name: str  # summa@3
    app: str
    number: int
    id: str
    state: str  # proposed, approved, refused or revoked
    repository: str
    branch: str
    commit: str
    tree: str  # SHA-256 of its files
    manifest_hash: str
    image: str
    digest: str
    proposed: datetime
    proposed_by: str
    author: str = ""  # of the commit, as it claims
    written: str = ""
    subject: str = ""
    findings: tuple[str, ...] = ()  # what a reviewer should know
    decided: datetime | None = None
    decided_by: str = ""
    why: str = ""
    manifest: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AppView:
    """An app with its versions, newest first."""

    name: str
    person: str
    repository: str
    created: datetime
    current: int | None = None  # the version that runs if none is named
    title: str = ""  # its name for people, if that differs
    description: str = ""
    versions: tuple[VersionView, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AppList:
    """Apps, by name."""

    items: tuple[AppView, ...]


@dataclass(frozen=True, kw_only=True)
class MaintainerView:
    """A generic image of the operator, for approved repositories without their own."""

    name: str
    kind: str  # what it runs of code without a manifest: python or jupyter
    image: str
    digest: str = ""  # empty: looked up at each proposal
    systems: tuple[str, ...] = ()  # where it may be used; empty: anywhere
    apps: dict[str, str] = field(default_factory=dict)  # apps approved for it → their repositories


@dataclass(frozen=True, kw_only=True)
class MaintainerList:
    """Maintainers, by name."""

    items: tuple[MaintainerView, ...]


@dataclass(frozen=True, kw_only=True)
class FacilitiesView:
    """What the platforms that the caller may use offer to apps besides their images."""

    images: dict[str, str] = field(default_factory=dict)  # names that manifests may use → locations
    mpi: tuple[str, ...] = ()  # platforms whose Slurm starts MPI tasks
    gpus: dict[str, int] = field(default_factory=dict)  # platform → the most in a node
    nodes: dict[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)  # → cores and bytes of each node size
    online: tuple[str, ...] = ()  # platforms whose containers have network access
    offline: tuple[str, ...] = ()  # platforms whose containers have none
    unknown: tuple[str, ...] = ()  # platforms of which it isn't known whether nodes have network access
    data: tuple[str, ...] = ()  # schemes of addresses that data is brought from
    places: dict[str, tuple[str, ...]] = field(default_factory=dict)  # path in containers → platforms
    largest: int = 0  # bytes of a file that can be brought; 0: no limit


@dataclass(frozen=True, kw_only=True)
class FileView:
    """One file of an app, with invisible characters written out."""

    path: str
    size: int
    executable: bool = False
    binary: bool = False
    link: str = ""  # the target of a symbolic link
    text: str = ""
    cut: bool = False  # whether the text was truncated


@dataclass(frozen=True, kw_only=True)
class ChangeView:
    """How one file differs from the earlier version."""

    path: str
    how: str  # added, removed or changed
    diff: str = ""


@dataclass(frozen=True, kw_only=True)
class ReviewView:
    """Everything that a reviewer of a version has to see."""

    version: VersionView
    files: tuple[FileView, ...]
    base: VersionView | None = None  # the last version that was approved before
    changes: tuple[ChangeView, ...] = ()  # since then
    manifest_diff: str = ""


@dataclass(frozen=True, kw_only=True)
class ApproveAsk:
    """The approval of exactly the files with this hash."""

    tree: str
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class RefuseAsk:
    """A refusal, and why."""

    why: str


@dataclass(frozen=True, kw_only=True)
class RevokeAsk:
    """The revocation of an approval; `cancel` also ends running sessions."""

    why: str
    cancel: bool = False


@dataclass(frozen=True, kw_only=True)
class RevokedView:
    """A revoked version, and the sessions that were notified."""

    version: VersionView
    sessions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class UpstreamView:
    """The current state of a version's branch, which doesn't change what is run."""

    version: str
    commit: str
    tip: str
    words: str
