"""A computing system that others run: its logins, its queues, what it refuses, and the sources of these facts."""

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
    """A source of facts."""

    name: str
    kind: Literal[
        "official", "copy", "configuration", "notes", "live"
    ]  # copy: of an official page; configuration: others' settings; notes: of users; live: the system itself
    date: str  # of its text; only a year or a month where no more is known
    link: str = ""
    file: str = ""  # a public repository, and the file in it
    undated: bool = False  # the text has no date, so this is the day when it was read
    notes: str = ""


@dataclass(frozen=True, slots=True)
class NodeKind:
    """One type of node of a queue."""

    name: str
    cores: int | None = None
    memory: int | None = None  # in bytes, nominally; a job gets less
    usable: int | None = None  # in bytes, available to a job
    gpus: int = 0
    gpu: str = ""  # its model
    gpu_memory: int | None = None
    disk: str = ""
    count: int | None = None
    arch: str = ""
    select: str = ""  # the option that chooses this type in a queue that has several
    notes: str = ""
    sources: tuple[str, ...] = ()

    @property
    def most_memory(self) -> int | None:
        """The most memory that a job could get on the node, as far as is known."""
        return self.usable or self.memory


@dataclass(frozen=True, slots=True)
class TimeStep:
    """The time limit for jobs with this range of nodes."""

    min_nodes: int
    max_nodes: int
    time: timedelta


@dataclass(frozen=True, slots=True)
class Quota:
    """The limit on all jobs of one user, project or group together."""

    per: str  # user, project or group; empty: unspecified
    what: Literal["nodes", "cores", "gpus", "memory", "running", "submitted"]
    most: int


@dataclass(frozen=True, slots=True)
class Charge:
    """The price of an hour in the centre's own unit."""

    factor: float
    unit: str
    node: str = ""  # only for this type of node


@dataclass(frozen=True, slots=True)
class Queue:
    """A partition, QOS or queue: its limits, and how the scheduler names it."""

    name: str
    purpose: str = ""
    options: tuple[str, ...] = ()  # the scheduler options that choose it, where the name alone doesn't
    access: str = ""  # who may use it, if not everyone
    sharing: Sharing = ""
    nodes: tuple[NodeKind, ...] = ()  # the most common type first
    min_nodes: int | None = None
    max_nodes: int | None = None
    min_time: timedelta | None = None
    max_time: timedelta | None = None
    time_by_nodes: tuple[TimeStep, ...] = ()
    min_cores: int | None = None  # the limits from here on are for a whole job
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
        """The scheduler options that choose the queue: `{"partition": "standard", "qos": "short"}`."""
        pairs = (option.lstrip("-").partition("=") for option in self.options)
        return {name: value for name, _, value in pairs} or {"partition": self.name}


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that is known to be installed."""

    name: str
    module: str = ""  # to load first
    version: str = ""
    notes: str = ""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class System:
    """Everything known about a system before anyone signs in; unknown values are empty."""

    name: str
    title: str = ""
    centre: str = ""
    country: str = ""
    guide: str = ""  # the centre's own documentation
    closes: str = ""  # the day on which it is, or was, shut down
    looked_at: str = ""  # the day on which its facts were collected
    sure: str = ""  # how reliable they are
    # Login
    hosts: tuple[str, ...] = ()
    alias: str = ""  # the pattern of its host names where each project has its own
    jump: str = ""
    transfer_hosts: tuple[str, ...] = ()
    ways: tuple[str, ...] = ()  # keys, passwords, certificates
    second_factor: Often = ""
    factor: str = ""  # its type
    certificate: timedelta | None = None  # how long a certificate is valid
    shares_connections: bool = True  # whether one SSH connection may carry several sessions
    # Scheduler
    scheduler: str = ""
    version: str = ""
    project_needed: Often = ""
    project_when: str = ""
    default_queue: str = ""
    needs: tuple[str, ...] = ()  # required attributes (queue, nodes, time, constraint) or options
    refuses: tuple[str, ...] = ()  # options
    # Everything else
    outbound: Outbound = ""
    leaning: Outbound = ""  # what is likely, where sources disagree
    proxy: str = ""
    tools: tuple[Tool, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)  # home, scratch, project, … → path and size
    queues: tuple[Queue, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)  # login, scheduler, network → remarks
    doubts: tuple[str, ...] = ()  # where sources disagree, or say nothing
    sources: tuple[Source, ...] = ()
    sourced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # login, scheduler, … → names of sources
    # From the person's own file
    like: str = ""  # the system of the catalogue that it is based on
    user: str = ""
    key: str = ""  # a service account's private key, to sign in without a person; a certificate may be beside it
    port: int | None = None
    project: str = ""
    queue: str = ""
    constraint: str = ""
    directory: str = ""  # for sessions there
    scratch: str = ""  # the local disk of a node
    modules: tuple[str, ...] = ()  # loaded in every job, and to find tools
    path: tuple[str, ...] = ()  # searched first for tools
    options: tuple[str, ...] = ()  # more options for sbatch, in every job and lease
    pilot: tuple[str, ...] = ()  # HTCondor configuration lines, for the pilots of every lease
    site_file: str = ""  # the site's own file that lowers polling rates and limits
    poll: timedelta | None = None  # the shortest interval between queries of the queue
    look: timedelta | None = None  # the shortest interval between reads of jobs' records
    ssh: Mapping[str, str] = field(default_factory=dict)  # more options for ssh, as in ssh_config(5)
    mounts: Mapping[str, str] = field(default_factory=dict)  # remote path → path on this machine
    settings: Mapping[str, Any] = field(default_factory=dict)  # platform settings, as in `[platforms.NAME]`
    own: tuple[str, ...] = ()  # the fields that come from the person's own file: "login.hosts"

    def find_queue(self, name: str) -> Queue | None:
        """Return the queue of this name, or None."""
        return next((queue for queue in self.queues if queue.name == name), None)


def age(day: str, today: date) -> str:
    """Describe how long ago a day was: `today`, `12 days ago`, `3 months ago`."""
    days = (today - date.fromisoformat(day)).days
    if days < 1:
        return "today"
    count, unit = (days // 365, "year") if days >= 730 else (days // 30, "month") if days >= 61 else (days, "day")
    return f"{count} {unit} ago" if count == 1 else f"{count} {unit}s ago"
