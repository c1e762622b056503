"""Which of a site's queues may be used: its partitions, or the queues that the centre defines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sublet.platforms.batch.site import SiteQueue
from sublet.platforms.slurm.offers import Site

Called = Mapping[str, Mapping[str, str]]  # the centre's name of a queue → what Slurm is told: a partition, a QOS


def open_to(site: Site, queue: str, project: str, reservation: str, called: Called | None = None) -> list[SiteQueue]:
    """Return the queues that may be used: the named one, or those that are up and open to the project."""
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
    """Return a queue defined as a partition with a QOS, or as a QOS alone, for which the site chooses the partition."""
    partition = words.get("partition", "")
    if partition:
        return [replace(each, name=name, partition=partition) for each in site.queues if each.name == partition]
    return [SiteQueue(name, partition="")] if any(each.up for each in site.queues) else []


def partitions(site: Site, queues: list[SiteQueue]) -> set[str]:
    """Return the partitions behind these queues."""
    chosen = {each.said for each in queues}
    return {each.name for each in site.queues} if "" in chosen else chosen
