"""What a Slurm site says of itself when a person asks: its queues, limits, nodes, accounts and tools, read anew."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from sublet.platforms.batch.commands import to_probe_tools
from sublet.platforms.batch.site import SiteNode, SiteQueue, by_queue
from sublet.platforms.slurm import readers as read
from sublet.platforms.slurm.commands import SURVEY
from sublet.platforms.slurm.scheduler import SLURM
from sublet.reach.port import Command, Outcome, Reach, as_is
from sublet.systems.model.probe import Live, tighter
from sublet.systems.model.system import NodeKind, Queue, Quota

GIB = 1 << 30
QOS_FORMAT = "Name,MaxWall,MaxTRES,MinTRES,MaxJobsPU,MaxSubmitPU,MaxTRESPU"
SHARED = re.compile(r"select/cons_(res|tres)")  # parts of a node are given; else whole ones


def to_probe(tools: Mapping[str, str]) -> dict[str, Command[Outcome]]:
    """All that a probe asks, in one exec; `tools` are looked for in their modules."""
    qos = ("sacctmgr", "--noheader", "--parsable2", "show", "qos", f"format={QOS_FORMAT}")
    asked = {name: SURVEY[name] for name in ("nodes", "queues", "config", "accounts")}
    return asked | {
        "qos": Command(qos, as_is, seconds=20),
        "tools": to_probe_tools(tools),
    }


async def probe(platform: str, reach: Reach, tools: Mapping[str, str]) -> Live:
    """Ask, and read what was said; what a site has not is left out."""
    commands = to_probe(tools)
    answers = dict(zip(commands, await reach.run_all(list(commands.values())), strict=True))
    for needed in SLURM.needed:
        if answers[needed].code:
            raise SLURM.failures(platform).explain(answers[needed])
    texts = {name: outcome.text for name, outcome in answers.items() if not outcome.code}
    return read_live(texts, datetime.now(UTC))


def read_live(texts: Mapping[str, str], now: datetime) -> Live:
    """The answers of those commands, by their names."""
    config = read.read_config(texts.get("config", ""))
    partitions = read.read_queues(texts.get("queues", ""))
    there = by_queue(partitions, read.read_nodes(texts.get("nodes", "")))
    qos = read_qos(texts.get("qos", ""))
    shared = bool(SHARED.search(config.get("SelectType", "")))
    return Live(
        as_of=now,
        scheduler="slurm",
        version=config.get("SLURM_VERSION", ""),
        default_queue=next((partition.name for partition in partitions if partition.default), ""),
        queues=tuple(_queue(partition, there[partition.name], qos, shared) for partition in partitions if partition.up),
        qos=qos,
        accounts=read.read_accounts(texts.get("accounts", "")),
        tools=dict(line.split("\t", 1) for line in texts.get("tools", "").splitlines() if "\t" in line),
    )


def _queue(site: SiteQueue, nodes: Sequence[SiteNode], qos: Iterable[Queue], shared: bool) -> Queue:
    queue = Queue(
        site.name,
        sharing="whole" if site.whole or not shared else "shared",
        nodes=_kinds(nodes, site),
        min_nodes=site.min_nodes if site.min_nodes > 1 else None,
        max_nodes=site.max_nodes,
        max_time=site.max_time,
    )
    own = next((each for each in qos if each.name == site.qos), None)
    return tighter(queue, own) if own else queue


def _kinds(nodes: Iterable[SiteNode], site: SiteQueue) -> tuple[NodeKind, ...]:
    """The sorts of node, the common one first; what a queue's own limits keep of them is not a job's."""
    kinds: dict[str, NodeKind] = {}
    for node in nodes:
        cores = min(node.node.cores, site.max_cores // node.threads if site.max_cores else node.node.cores)
        memory = min(node.node.memory, site.max_memory or node.node.memory)
        name = _name(cores, memory, node.node.gpus)
        seen = kinds.get(name, NodeKind(name, cores, memory, memory, node.node.gpus, count=0))
        least = min(memory, seen.memory or memory)  # nodes of one sort differ by a few MiB
        kinds[name] = replace(seen, memory=least, usable=least, count=(seen.count or 0) + 1)
    return tuple(sorted(kinds.values(), key=lambda kind: -(kind.count or 0)))


def _name(cores: int, memory: int, gpus: int) -> str:
    """`128c-251g`, `40c-376g-4gpu`; under a GiB in MiB, as `2c-900m`."""
    size = f"{round(memory / GIB)}g" if memory >= GIB else f"{memory // read.MIB}m"
    return f"{cores}c-{size}" + (f"-{gpus}gpu" if gpus else "")


def read_qos(text: str) -> tuple[Queue, ...]:
    """The limits of each QOS in `sacctmgr -nP show qos`."""
    return tuple(_qos(parts) for line in text.splitlines() if len(parts := line.strip().split("|")) == 7)


def _qos(parts: Sequence[str]) -> Queue:
    name, wall, most, least, running, submitted, each = parts
    most_of, least_of, of_user = (
        dict(pair.split("=", 1) for pair in text.split(",") if "=" in pair) for text in (most, least, each)
    )
    amounts = {"running": read.count(running), "submitted": read.count(submitted)}
    amounts |= {
        what: read.count(of_user.get(word, ""))
        for what, word in (("nodes", "node"), ("cores", "cpu"), ("gpus", "gres/gpu"))
    }
    return Queue(
        name,
        min_nodes=read.count(least_of.get("node", "")),
        max_nodes=read.count(most_of.get("node", "")),
        max_time=read.length(wall),
        min_cores=read.count(least_of.get("cpu", "")),
        max_cores=read.count(most_of.get("cpu", "")),
        max_gpus=read.count(most_of.get("gres/gpu", "")),
        quotas=tuple(Quota("user", what, count) for what, count in amounts.items() if count),  # type: ignore[arg-type]
    )
