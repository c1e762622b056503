"""Views of HTCondor jobs at the access point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, kw_only=True)
class JobView:
    """One job."""

    id: str  # 12.0
    state: str  # idle, running, held, ending, suspended, completed, removed
    name: str
    annex: str = ""  # the name of the annex that it names; its id, if that isn't the caller's
    node: str = ""
    submitted: datetime | None = None
    since: datetime | None = None  # when its state began
    cores: int | None = None
    memory: int | None = None
    disk: int | None = None
    gpus: int | None = None
    time: timedelta | None = None  # its time limit
    why: str = ""  # why it is held, or was removed
    code: int | None = None
    session: str = ""
    guest: str = ""  # the person it runs for, if not the annex's owner
    jobset: str = ""
    universe: str = "vanilla"  # includes containers; jobs of other universes run on no annex


@dataclass(frozen=True, kw_only=True)
class JobList:
    """Jobs, by id."""

    items: tuple[JobView, ...]
    dags: tuple[str, ...] = ()  # the DAGs that were marked as a whole, including nodes submitted later


@dataclass(frozen=True, kw_only=True)
class JobExplanation:
    """Why a job is in its state."""

    job: JobView
    sentences: tuple[str, ...]
    hint: str = ""


@dataclass(frozen=True, kw_only=True)
class MarkAsk:
    """Jobs to mark, move, unmark or remove."""

    jobs: tuple[str, ...]  # 12 (all of a cluster, or a DAG), 12.0
    annex: str = ""  # not for unmark and remove
    now: bool = False  # stop jobs that run elsewhere


@dataclass(frozen=True, kw_only=True)
class SubmittingView:
    """What HTCondor's own tools need to submit for an annex, on the machine of its access point."""

    annex: str
    id: str
    leased: bool  # whether it has nodes, or is waiting for some
    environment: Mapping[str, str]
    programs: Mapping[str, str]  # name → path


@dataclass(frozen=True, kw_only=True)
class DagView:
    """A DAG of jobs and its progress."""

    id: str  # the cluster of its manager
    name: str
    state: str
    annex: str = ""  # the name of the annex that its nodes name; its id, if that isn't the caller's
    parent: str = ""  # the DAG of which it is a sub-DAG
    submitted: datetime | None = None
    total: int = 0  # nodes
    done: int = 0
    prerun: int = 0
    queued: int = 0
    postrun: int = 0
    ready: int = 0
    unready: int = 0
    failed: int = 0
    futile: int = 0  # nodes that can't run because others failed
    why: str = ""
    code: int | None = None
    only_provisioner: bool = False  # whether only the provisioner is left


@dataclass(frozen=True, kw_only=True)
class DagList:
    """DAGs, by id."""

    items: tuple[DagView, ...]
