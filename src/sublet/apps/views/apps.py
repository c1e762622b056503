"""Apps: proposed, looked at, decided on."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ProposeAsk:
    """Proposes a repository: its branch (else its own choice), a commit of that (else the newest), and a name."""

    repository: str
    branch: str = ""
    commit: str = ""
    name: str = ""
    maintainer: str = ""  # a generic image of the operator's, for code that brings none


@dataclass(frozen=True, kw_only=True)
class VersionView:
    """One state of an app, that is decided on as it is."""

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
    """An app with its versions, the newest first."""

    name: str
    person: str
    repository: str
    created: datetime
    current: int | None = None  # the version that is run if none is named
    title: str = ""  # its name as people write it, where that is another
    description: str = ""
    versions: tuple[VersionView, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AppList:
    """Apps, by name."""

    items: tuple[AppView, ...]


@dataclass(frozen=True, kw_only=True)
class MaintainerView:
    """A generic image of the operator's, for approved repositories that bring none."""

    name: str
    kind: str  # what it runs of code without a manifest: python or jupyter
    image: str
    digest: str = ""  # empty: looked up at each proposal
    systems: tuple[str, ...] = ()  # where it may be used; none: anywhere
    apps: dict[str, str] = field(default_factory=dict)  # those that were approved for it → their repositories


@dataclass(frozen=True, kw_only=True)
class MaintainerList:
    """Maintainers, by name."""

    items: tuple[MaintainerView, ...]


@dataclass(frozen=True, kw_only=True)
class FacilitiesView:
    """What there is of what apps need beside their images, on the platforms that the asker may use."""

    images: dict[str, str] = field(default_factory=dict)  # names that manifests may use → where they are
    mpi: tuple[str, ...] = ()  # platforms whose Slurm starts tasks that find each other
    gpus: dict[str, int] = field(default_factory=dict)  # platform → how many a node has at most
    nodes: dict[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)  # → cores and bytes of each sort
    online: tuple[str, ...] = ()  # platforms whose containers have a network
    offline: tuple[str, ...] = ()  # platforms whose containers have none
    unknown: tuple[str, ...] = ()  # platforms of which nobody knows whether nodes have a way out
    data: tuple[str, ...] = ()  # schemes of the addresses that data is brought from
    places: dict[str, tuple[str, ...]] = field(default_factory=dict)  # where containers see one → the platforms
    largest: int = 0  # bytes of a file that can be brought; 0: however many


@dataclass(frozen=True, kw_only=True)
class FileView:
    """One file of an app; what would not be seen in its text is written out."""

    path: str
    size: int
    executable: bool = False
    binary: bool = False
    link: str = ""  # of a symbolic link: where it leads
    text: str = ""
    cut: bool = False  # whether there is more of it


@dataclass(frozen=True, kw_only=True)
class ChangeView:
    """How one file differs from the version before."""

    path: str
    how: str  # added, removed or changed
    diff: str = ""


@dataclass(frozen=True, kw_only=True)
class ReviewView:
    """All that someone who decides on a version has to see."""

    version: VersionView
    files: tuple[FileView, ...]
    base: VersionView | None = None  # the last one that was approved before
    changes: tuple[ChangeView, ...] = ()  # since then
    manifest_diff: str = ""


@dataclass(frozen=True, kw_only=True)
class ApproveAsk:
    """Approves exactly the files with this hash."""

    tree: str
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class RefuseAsk:
    """Refuses, and says why."""

    why: str


@dataclass(frozen=True, kw_only=True)
class RevokeAsk:
    """Takes an approval back; `cancel` also ends what runs."""

    why: str
    cancel: bool = False


@dataclass(frozen=True, kw_only=True)
class RevokedView:
    """A version that can't be run any more, and the sessions that were told."""

    version: VersionView
    sessions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class UpstreamView:
    """What has become of a version's branch; nothing of that changes what is run."""

    version: str
    commit: str
    tip: str
    words: str
