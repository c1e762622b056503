"""A Slurm site's description of itself when a person probes it: queues, limits, nodes, accounts and tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from sublet.platforms.batch.commands import to_probe_tools
from sublet.platforms.batch.probe import ask_all, describe_queue, read_tools
from sublet.platforms.batch.site import SiteNode, SiteQueue, by_queue, list_choices
from sublet.platforms.slurm import readers as read
from sublet.platforms.slurm.commands import SURVEY, to_admin
from sublet.platforms.slurm.reserving import can_reserve
from sublet.platforms.slurm.scheduler import SLURM
from sublet.reach.port import Command, Outcome, Reach, as_is
from sublet.systems.model.probe import Live, tighter
from sublet.systems.model.system import Queue, Quota

QOS_FORMAT = "Name,MaxWall,MaxTRES,MinTRES,MaxJobsPU,MaxSubmitPU,MaxTRESPU"
SHARED = re.compile(r"select/cons_(res|tres)")  # parts of nodes are given; otherwise whole ones


def to_probe(tools: Mapping[str, str]) -> dict[str, Command[Outcome]]:
    """Return all commands of a probe, for one exec; `tools` are looked for in their modules."""
    qos = ("sacctmgr", "--noheader", "--parsable2", "show", "qos", f"format={QOS_FORMAT}")
    asked = {name: SURVEY[name] for name in ("nodes", "queues", "config", "accounts", "licenses")}
    return asked | {
        "qos": Command(qos, as_is, seconds=20),
        "admin": to_admin(),
        "tools": to_probe_tools(tools),
    }


async def probe(platform: str, reach: Reach, tools: Mapping[str, str]) -> Live:
    """Run a probe and read the answers; what a site doesn't have is left out."""
    texts = await ask_all(platform, reach, SLURM, to_probe(tools))
    return read_live(texts, datetime.now(UTC))


def read_live(texts: Mapping[str, str], now: datetime) -> Live:
    """Read the answers of a probe's commands, by name."""
    config = read.read_config(texts.get("config", ""))
    partitions = read.read_queues(texts.get("queues", ""))
    nodes = read.read_nodes(texts.get("nodes", ""))
    there = by_queue(partitions, nodes)
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
        tools=read_tools(texts.get("tools", "")),
        choices=list_choices(nodes, read.read_licenses(texts.get("licenses", ""))),
        can_reserve=can_reserve(texts.get("admin", ""), config),
    )


def _queue(site: SiteQueue, nodes: Sequence[SiteNode], qos: Iterable[Queue], shared: bool) -> Queue:
    queue = describe_queue(site, nodes, "shared" if shared else "whole")
    own = next((each for each in qos if each.name == site.qos), None)
    return tighter(queue, own) if own else queue


def read_qos(text: str) -> tuple[Queue, ...]:
    """Read the limits of each QOS in `sacctmgr -nP show qos`."""
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
