"""A computing system that others run: its doors, its queues, what it refuses, and who says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, Literal

Often = Literal["always", "sometimes", "never", ""]  # empty: not known
Sharing = Literal["whole", "shared", "slice", ""]  # slice: a virtual machine that is sold as a node
Outbound = Literal["open", "closed", "proxy", ""]


@dataclass(frozen=True, slots=True)
class Source:
    """Where facts come from."""

    name: str
    kind: Literal[
        "official", "copy", "configuration", "notes", "live"
    ]  # a copy of the official; others' settings; users' notes; the system itself
    date: str  # of its text; a year or a month where no more is known
    link: str = ""
    file: str = ""  # a public repository, and the file in it
    undated: bool = False  # its text has no date: this is when it was read
    notes: str = ""


@dataclass(frozen=True, slots=True)
class NodeKind:
    """One sort of node that a queue has."""

    name: str
    cores: int | None = None
    memory: int | None = None  # in bytes, as it is called; a job gets less
    usable: int | None = None  # in bytes, what a job can have
    gpus: int = 0
    gpu: str = ""  # which
    gpu_memory: int | None = None
    disk: str = ""
    count: int | None = None
    arch: str = ""
    select: str = ""  # the option that chooses this sort in a queue that has several
    notes: str = ""
    sources: tuple[str, ...] = ()

    @property
    def most_memory(self) -> int | None:
        """The most that a job could have of it, as far as is known."""
        return self.usable or self.memory


@dataclass(frozen=True, slots=True)
class TimeStep:
    """The longest time for jobs of so many nodes."""

    min_nodes: int
    max_nodes: int
    time: timedelta


@dataclass(frozen=True, slots=True)
class Quota:
    """What all the jobs of one user, project or group may take together."""

    per: str  # user, project, group; empty: not said of whom
    what: Literal["nodes", "cores", "gpus", "memory", "running", "submitted"]
    most: int


@dataclass(frozen=True, slots=True)
class Charge:
    """What an hour costs in the centre's own coin."""

    factor: float
    unit: str
    node: str = ""  # only for this sort of node


@dataclass(frozen=True, slots=True)
class Queue:
    """A partition, QOS or queue: what fits in, and how it is named to the scheduler."""

    name: str
    purpose: str = ""
    options: tuple[str, ...] = ()  # the scheduler's words that choose it, where the name alone doesn't
    access: str = ""  # for whom, if not for all
    sharing: Sharing = ""
    nodes: tuple[NodeKind, ...] = ()  # the common sort first
    min_nodes: int | None = None
    max_nodes: int | None = None
    min_time: timedelta | None = None
    max_time: timedelta | None = None
    time_by_nodes: tuple[TimeStep, ...] = ()
    min_cores: int | None = None  # these are of a whole job
    max_cores: int | None = None
    max_gpus: int | None = None
    min_memory: int | None = None
    quotas: tuple[Quota, ...] = ()
    charges: tuple[Charge, ...] = ()
    preemptible: bool = False
    notes: str = ""
    sources: tuple[str, ...] = ()

    @property
    def words(self) -> dict[str, str]:
        """What the scheduler calls it: `{"partition": "standard", "qos": "short"}`; by its name alone, a partition."""
        pairs = (option.lstrip("-").partition("=") for option in self.options)
        return {name: value for name, _, value in pairs} or {"partition": self.name}


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that is known to be there."""

    name: str
    module: str = ""  # what to load first
    version: str = ""
    notes: str = ""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class System:
    """Everything that is known about a system before anyone signs in; what is not known is empty."""

    name: str
    title: str = ""
    centre: str = ""
    country: str = ""
    guide: str = ""  # the centre's own documentation
    closes: str = ""  # the day on which it ends, or ended
    looked_at: str = ""  # the day on which its facts were collected
    sure: str = ""  # how far they can be trusted
    # The way in
    hosts: tuple[str, ...] = ()
    alias: str = ""  # the form of its host names where each project has its own
    jump: str = ""
    transfer_hosts: tuple[str, ...] = ()
    ways: tuple[str, ...] = ()  # keys, passwords, certificates
    second_factor: Often = ""
    factor: str = ""  # which
    certificate: timedelta | None = None  # how long one is good for
    shares_connections: bool = True  # whether one SSH connection may carry several sessions
    # The scheduler
    scheduler: str = ""
    version: str = ""
    project_needed: Often = ""
    project_when: str = ""
    default_queue: str = ""
    needs: tuple[str, ...] = ()  # attributes that must be said (queue, nodes, time, constraint), or options
    refuses: tuple[str, ...] = ()  # options
    # The rest
    outbound: Outbound = ""
    leaning: Outbound = ""  # where sources disagree
    proxy: str = ""
    tools: tuple[Tool, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)  # home, scratch, project, … → where, and how much
    queues: tuple[Queue, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)  # login, scheduler, network → what else to know
    doubts: tuple[str, ...] = ()  # what sources disagree on, or nobody says
    sources: tuple[Source, ...] = ()
    sourced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # login, scheduler, … → names of sources
    # The person's own
    like: str = ""  # the catalogue's system that it was made from
    user: str = ""
    key: str = ""  # a service account's, which lets it in with nobody asked; a certificate may be beside it
    port: int | None = None
    project: str = ""
    queue: str = ""
    constraint: str = ""
    directory: str = ""  # where sessions are kept there
    scratch: str = ""  # a node's own disk
    modules: tuple[str, ...] = ()  # to load, for finding tools and in every job
    path: tuple[str, ...] = ()  # where tools are looked for first
    options: tuple[str, ...] = ()  # more options for sbatch, in every job and lease
    pilot: tuple[str, ...] = ()  # lines of HTCondor's configuration, for the pilots of every lease
    site_file: str = ""  # the site's own file that lowers polling and limits
    poll: timedelta | None = None  # the least time between two looks at the queue
    look: timedelta | None = None  # the least time between two looks at jobs' records
    ssh: Mapping[str, str] = field(default_factory=dict)  # more options for ssh, as in ssh_config(5)
    mounts: Mapping[str, str] = field(default_factory=dict)  # what this machine sees of its files: path there → here
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the platform that it is, as in `[platforms.NAME]`
    own: tuple[str, ...] = ()  # the facts that come from the person's own file: "login.hosts"

    def find_queue(self, name: str) -> Queue | None:
        """The queue of this name, if there is one."""
        return next((queue for queue in self.queues if queue.name == name), None)


def age(day: str, today: date) -> str:
    """How long ago a day was, in words: `today`, `12 days ago`, `3 months ago`."""
    days = (today - date.fromisoformat(day)).days
    if days < 1:
        return "today"
    count, unit = (days // 365, "year") if days >= 730 else (days // 30, "month") if days >= 61 else (days, "day")
    return f"{count} {unit} ago" if count == 1 else f"{count} {unit}s ago"
