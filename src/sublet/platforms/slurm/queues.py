"""Which of a site's queues may be used: its partitions, or what the centre itself calls a queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sublet.platforms.batch.site import SiteQueue
from sublet.platforms.slurm.offers import Site

Called = Mapping[str, Mapping[str, str]]  # as the centre calls a queue → what Slurm is told: a partition, a QOS


def open_to(site: Site, queue: str, project: str, reservation: str, called: Called | None = None) -> list[SiteQueue]:
    """The queues that may be used: the one that is named, else those that are up and open to the project."""
    called = called or {}
    if queue in called:
        return _as_called(site, queue, called[queue])
    if queue:
        return [each for each in site.queues if each.name == queue]
    if called and not any(words.get("partition") for words in called.values()):
        return _as_called(site, "", {})
    mine = {project} if project else set(site.accounts)
    usable = [
        each
        for each in site.queues
        if each.up
        and (not each.needs_reservation or reservation)
        and (not each.accounts or not mine or mine & set(each.accounts))
        and not (mine and mine <= set(each.denied))
    ]
    return sorted(usable, key=lambda each: not each.default)


def _as_called(site: Site, name: str, words: Mapping[str, str]) -> list[SiteQueue]:
    """A queue that is a partition with a QOS, or a QOS alone: then the site chooses one of its partitions."""
    partition = words.get("partition", "")
    if partition:
        return [replace(each, name=name, partition=partition) for each in site.queues if each.name == partition]
    return [SiteQueue(name, partition="")] if any(each.up for each in site.queues) else []


def partitions(site: Site, queues: list[SiteQueue]) -> set[str]:
    """The partitions behind these queues."""
    chosen = {each.said for each in queues}
    return {each.name for each in site.queues} if "" in chosen else chosen
