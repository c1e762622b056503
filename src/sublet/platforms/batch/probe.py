"""A site's description of itself when a person probes it: queues, limits, kinds of node, tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from sublet.platforms.batch.commands import to_probe_tools
from sublet.platforms.batch.scheduler import Answers, Scheduler
from sublet.platforms.batch.site import SiteNode, SiteQueue, by_queue, list_choices
from sublet.reach.port import Command, Outcome, Reach
from sublet.systems.model.probe import Live
from sublet.systems.model.system import NodeKind, Queue

GIB, MIB = 1 << 30, 1 << 20
TOOLS = "probed tools"
ReadSite = Callable[[Answers], tuple[Sequence[SiteQueue], Sequence[SiteNode]]]


async def ask_all(
    platform: str, reach: Reach, scheduler: Scheduler, commands: Mapping[str, Command[Outcome]]
) -> dict[str, str]:
    """Run commands and return their output by name; failed ones are left out, unless the scheduler needs them."""
    answers = dict(zip(commands, await reach.run_all(list(commands.values())), strict=True))
    for needed in scheduler.needed:
        if answers[needed].code:
            raise scheduler.failures(platform).explain(answers[needed])
    return {name: outcome.text for name, outcome in answers.items() if not outcome.code}


async def probe_site(
    platform: str, kind: str, reach: Reach, scheduler: Scheduler, tools: Mapping[str, str], read_site: ReadSite
) -> Live:
    """Run all commands of a survey again, and look for tools in their modules."""
    texts = await ask_all(platform, reach, scheduler, {**scheduler.survey, TOOLS: to_probe_tools(tools)})
    queues, nodes = read_site(texts)
    there = by_queue(queues, nodes)
    return Live(
        as_of=datetime.now(UTC),
        scheduler=kind,
        default_queue=next((queue.name for queue in queues if queue.default), ""),
        queues=tuple(describe_queue(queue, there[queue.name], "shared") for queue in queues if queue.up),
        tools=read_tools(texts.get(TOOLS, "")),
        choices=list_choices(nodes),
    )


def describe_queue(site: SiteQueue, nodes: Sequence[SiteNode], sharing: str) -> Queue:
    """Describe a queue with its limits and its kinds of node; a queue that gives only whole nodes isn't shared."""
    return Queue(
        site.name,
        sharing="whole" if site.whole or sharing == "whole" else "shared",
        nodes=list_node_kinds(nodes, site),
        min_nodes=site.min_nodes if site.min_nodes > 1 else None,
        max_nodes=site.max_nodes,
        max_time=site.max_time,
    )


def list_node_kinds(nodes: Iterable[SiteNode], site: SiteQueue) -> tuple[NodeKind, ...]:
    """Return the kinds of node, the most common first, as far as the queue's limits let a job use them."""
    kinds: dict[str, NodeKind] = {}
    for node in nodes:
        cores = min(node.node.cores, site.max_cores // node.threads if site.max_cores else node.node.cores)
        memory = min(node.node.memory, site.max_memory or node.node.memory)
        name = name_node_kind(cores, memory, node.node.gpus)
        seen = kinds.get(name, NodeKind(name, cores, memory, memory, node.node.gpus, count=0))
        least = min(memory, seen.memory or memory)  # nodes of one kind differ by a few MiB
        kinds[name] = replace(seen, memory=least, usable=least, count=(seen.count or 0) + 1)
    return tuple(sorted(kinds.values(), key=lambda kind: -(kind.count or 0)))


def name_node_kind(cores: int, memory: int, gpus: int) -> str:
    """Return a name such as `128c-251g` or `40c-376g-4gpu`; memory under a GiB is in MiB, as `2c-900m`."""
    size = f"{round(memory / GIB)}g" if memory >= GIB else f"{memory // MIB}m"
    return f"{cores}c-{size}" + (f"-{gpus}gpu" if gpus else "")


def read_tools(text: str) -> dict[str, str]:
    """Read the output of `probe.sh`: name → version or path."""
    return dict(line.split("\t", 1) for line in text.splitlines() if "\t" in line)
