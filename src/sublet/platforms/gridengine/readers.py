"""Readers for Grid Engine's description of a site: hosts in qhost, queues and environments in qconf, complexes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from xml.etree import ElementTree

from sublet.booking.model.offer import Node
from sublet.platforms.batch.site import SiteNode, SiteQueue

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
NONE = frozenset({"", "NONE", "none"})
MEMORY = ("h_vmem", "m_mem_free", "mem_free", "virtual_free", "h_rss", "mem_req")  # sites' names for memory
GPU = ("gpu", "gpus", "ngpus", "cuda")
DISK = ("scratch", "tmpfs", "disk", "localdisk", "tmp_free")
CONSUMED = frozenset({"YES", "JOB", "HOST"})
CLOSED = frozenset("ds")  # an operator disabled or suspended it
AWAY = frozenset("uEdDc")  # of a queue's state on a host: unknown, error, disabled, by a calendar


def read_size(text: str) -> int:
    """Read bytes in `3.9G` or `512M`; 0 if it isn't a size."""
    match = re.fullmatch(r"([\d.]+)([KMGTkmgt]?)", text.strip())
    return int(float(match[1]) * UNITS.get(match[2], 1)) if match else 0


def read_count(text: str) -> int:
    """Read a number, as `4` or `4.000000`; of what has names, as `4(cuda0 cuda1`, the number alone."""
    match = re.match(r"\d+", text.strip())
    return int(match[0]) if match else 0


def read_length(text: str) -> timedelta | None:
    """Read a time in `1:00:00` or in seconds; None if there is no limit."""
    parts = text.strip().split(":")
    if not all(part.isdecimal() for part in parts):
        return None
    seconds = 0
    for part in parts:
        seconds = seconds * 60 + int(part)
    return timedelta(seconds=seconds)


def parse(text: str) -> ElementTree.Element:
    """Parse XML that a command printed; an empty element if it isn't XML."""
    try:
        return ElementTree.fromstring(text)  # noqa: S314 - of a scheduler that its user runs jobs with
    except ElementTree.ParseError:
        return ElementTree.Element("nothing")


@dataclass(frozen=True, slots=True)
class Complex:
    """A resource that can be requested by name."""

    name: str
    kind: str  # INT, MEMORY, BOOL, …
    each: bool  # requested per slot; otherwise per job, or per host


def read_complexes(text: str) -> dict[str, Complex]:
    """Read the consumable complexes in `qconf -sc`."""
    rows = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {row[0]: Complex(row[0], row[2], row[5] == "YES") for row in rows if len(row) >= 8 and row[5] in CONSUMED}


@dataclass(frozen=True, slots=True)
class ParallelEnvironment:
    """A way to get several slots: on one host, or a number on each of several."""

    name: str
    rule: str
    starts_tasks: bool = False  # `control_slaves`: a job starts programs on its other hosts by `qrsh -inherit`

    def gives(self, nodes: int, cores: int) -> bool:
        """Whether it gives exactly this many slots on this many hosts."""
        return self.rule == "$pe_slots" if nodes == 1 else self.rule == str(cores)


def read_blocks(text: str, first: str) -> Iterator[Mapping[str, str]]:
    """Yield the blocks that `qconf` prints for several objects, each beginning with this word."""
    block: dict[str, str] = {}
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        name, _, value = line.strip().partition(" ")
        if name == first and block:
            yield block
            block = {}
        if name:
            block[name] = value.strip()
    if block:
        yield block


def read_environments(text: str) -> tuple[ParallelEnvironment, ...]:
    """Read the parallel environments in `qconf -sp`."""
    blocks = read_blocks(text, "pe_name")
    return tuple(
        ParallelEnvironment(
            block["pe_name"], block.get("allocation_rule", ""), block.get("control_slaves", "").upper() == "TRUE"
        )
        for block in blocks
    )


@dataclass(frozen=True, slots=True)
class GridQueue:
    """A queue, and its parallel environments."""

    queue: SiteQueue
    environments: tuple[str, ...]


def read_queues(text: str, closed: Collection[str] = ()) -> tuple[GridQueue, ...]:
    """Read the queues in `qconf -sq` that accept batch jobs; `closed` ones start none now."""
    return tuple(
        GridQueue(
            SiteQueue(
                block["qname"],
                up=block["qname"] not in closed,
                default=block["qname"] == "all.q",
                max_time=read_length(_plain(block, "h_rt")),
            ),
            tuple(word for word in re.split(r"[\s,]+", _plain(block, "pe_list")) if word not in NONE),
        )
        for block in read_blocks(text, "qname")
        if "qname" in block and ("BATCH" in block.get("qtype", "BATCH") or _plain(block, "pe_list") not in NONE)
    )


def _plain(block: Mapping[str, str], name: str) -> str:
    """Return a value without those of single hosts: `4,[c1=8]`."""
    return re.sub(r",?\[[^\]]*\]", "", block.get(name, "")).strip()


HostValues = Mapping[str, Mapping[str, str]]  # host → its total of each consumable


def read_host_values(text: str) -> dict[str, dict[str, str]]:
    """Read the totals of each host in `qconf -se`; qhost has only what is left."""
    blocks = read_blocks(text, "hostname")
    return {
        block["hostname"]: dict(word.split("=", 1) for word in re.split(r"[\s,]+", block[name]) if "=" in word)
        for block in blocks
        if (name := "complex_values") in block and "hostname" in block
    }


def read_nodes(text: str, owned: HostValues, complexes: Mapping[str, Complex]) -> tuple[SiteNode, ...]:
    """Read the hosts in `qhost -q -F -xml`; their cores are the slots of their largest queue."""
    hosts = parse(text).iter("host")
    nodes = [_read_host(host, owned.get(host.get("name", ""), {}), complexes) for host in hosts]
    return tuple(node for node in nodes if node)


def _read_host(
    host: ElementTree.Element, owned: Mapping[str, str], complexes: Mapping[str, Complex]
) -> SiteNode | None:
    total = {each.get("name", ""): each.text or "" for each in host.findall("hostvalue")}
    values = {name: value for name, value in owned.items() if name in complexes}
    values |= {"mem_total": total.get("mem_total", "")}
    queues = {queue.get("name", ""): _read_queue_values(queue) for queue in host.findall("queue")}
    slots = max((int(each.get("slots", "0") or 0) for each in queues.values()), default=0)
    if not slots:
        return None
    memory = next((read_size(values[name]) for name in (*MEMORY, "mem_total") if read_size(values.get(name, ""))), 0)
    gpus = next((read_count(values[name]) for name in GPU if values.get(name)), 0)
    disk = next((read_size(values[name]) for name in DISK if values.get(name)), 0)
    is_here = any(not set(each.get("state_string", "")) & AWAY for each in queues.values())
    node = Node(host.get("name", ""), slots, memory, gpus, disk)
    return SiteNode(node, tuple(queues), here=is_here)


def find_closed_queues(text: str) -> frozenset[str]:
    """Return the queues in `qhost -q -F -xml` that an operator has disabled or suspended on all of their hosts."""
    states: dict[str, list[str]] = {}
    for queue in parse(text).iter("queue"):
        states.setdefault(queue.get("name", ""), []).append(_read_queue_values(queue).get("state_string", ""))
    return frozenset(name for name, each in states.items() if all(CLOSED & set(letters) for letters in each))


def _read_queue_values(queue: ElementTree.Element) -> dict[str, str]:
    return {each.get("name", ""): each.text or "" for each in queue.findall("queuevalue")}
