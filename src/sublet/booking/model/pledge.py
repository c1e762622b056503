"""Pledges: parts of a platform's capacity, each with its own access rule; what is not pledged is *open*.

A pledge is a number of cores, not certain nodes. A booking that may draw on several pledges uses whatever is left of
any of them. The bookings at a moment fit exactly if, for every set of pledges, the bookings that may draw on nothing
outside the set don't exceed its size (Hall's theorem). So each set is one bound in the calendar, and no booking is
ever moved from one pledge to another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

from sublet.booking.model.offer import Answer, Offer, Reason

OPEN = "open"  # what is not pledged: for everyone who may use the platform
MOST = 6  # pledges of one platform that a session can draw on together; if there are more, it draws on one alone
ALL_PLEDGED = Reason("urn:resource-limit", "compute", "Every core of this platform is pledged to others.")
MARK = "pledge:"  # prefix of the pools of pledged cores in a calendar
OTHER_MARK = "pledge@"  # prefix of the pools of what is pledged besides cores
SCHEDULED = "pledge@scheduled:"  # prefix of a pool that marks a pledge as not always in force


def order_names(names: Iterable[str]) -> tuple[str, ...]:
    """Sort the names of pledges alphabetically, with `open` last."""
    return tuple(sorted(set(names), key=lambda name: (name == OPEN, name)))


def pledge_text(names: Iterable[str]) -> str:
    """Return the names of pledges as text: `srcnet`, or `srcnet + open`."""
    return " + ".join(order_names(names))


def pool_of(names: Iterable[str]) -> str:
    """Return the pool of cores for a booking that may draw on any of these pledges; empty if there are none."""
    known = order_names(names)
    return f"{MARK}{'+'.join(known)}" if known else ""


def storage_pool(pool: str) -> str:
    """Return the pool of pledged storage that belongs to a pool of pledged cores."""
    return f"{OTHER_MARK}storage:{pool.removeprefix(MARK)}"


def is_pledge(pool: str) -> bool:
    """Whether a pool is of pledges, and not one of the platform's storage pools."""
    return pool.startswith((MARK, OTHER_MARK))


def sizes_in(pools: Mapping[str, int]) -> dict[str, int]:
    """Return the pledges among a calendar's pools, and `open`, with the cores of each.

    A pledge without cores draws on the open ones; cores that are pledged at certain hours only count as open, too.
    """
    cores = {pool.removeprefix(MARK): size for pool, size in pools.items() if pool.startswith(MARK)}
    if cores:
        at_times = (pool.removeprefix(SCHEDULED) for pool in pools if pool.startswith(SCHEDULED))
        cores[OPEN] = cores.get(OPEN, 0) + sum(cores.get(name, 0) for name in at_times)
    others = {pool.partition(":")[2] for pool in pools if pool.startswith(OTHER_MARK)}
    return {**dict.fromkeys(sorted(others), cores.get(OPEN, 0)), **cores}


def find_sources(pool: str, sizes: Mapping[str, int]) -> frozenset[str]:
    """Return the pledges that a booking in a pool may draw on; a pledge that no longer exists counts as open."""
    return frozenset(name if name in sizes else OPEN for name in pool.removeprefix(MARK).split("+"))


def list_sets(names: Collection[str]) -> list[frozenset[str]]:
    """Return the sets of pledges that need a bound: all but the whole, or each alone if there are many pledges."""
    largest = len(names) if len(names) <= MOST + 1 else 2
    return [frozenset(some) for count in range(1, largest) for some in combinations(names, count)]


def shares(pledge: Mapping[str, int]) -> dict[str, Fraction]:
    """Return a session's share in each pledge that it draws on, in proportion to their sizes."""
    total = sum(pledge.values())
    return {name: Fraction(pledge[name], total) if total else Fraction(1, len(pledge)) for name in order_names(pledge)}


def find_drawn(booked: Mapping[str, int], sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the cores drawn on each pledge, given what is booked in the pools; what several share, by their sizes."""
    drawn = dict.fromkeys(sizes, Fraction(0))
    for pool, cores in booked.items():
        for name, share in shares({name: sizes.get(name, 0) for name in find_sources(pool, sizes)}).items():
            drawn[name] = drawn.get(name, Fraction(0)) + cores * share
    return {name: round(cores) for name, cores in drawn.items()}


Look = Callable[[Mapping[str, int]], Answer]  # returns the offers that draw on these pledges, the earliest first


def offers_within(names: Iterable[str], sizes: Mapping[str, int], least: int, at_most: int, look: Look) -> Answer:
    """Return offers for a person who may draw on these pledges and needs at least so many cores.

    They draw on the one pledge with the earliest start, `open` before others. They draw on all pledges together if
    none is large enough alone; and if that starts earlier, one more such offer is added.
    """
    whole = {name: sizes[name] for name in order_names(names) if sizes.get(name, 0) > 0}
    open_first = sorted(whole, key=lambda name: (name != OPEN, name))
    alone = [{name: sizes[name]} for name in open_first if sizes[name] >= least]
    if not whole:
        return Answer(reasons=(ALL_PLEDGED,))
    if len(whole) <= 1 or (not alone and len(sizes) <= MOST + 1):
        return look(whole)
    across = look(whole) if len(sizes) <= MOST + 1 else Answer()
    soonest = across.offers[0].start if across.offers else None
    best: Answer | None = None
    for pledge in alone:
        answer = look(pledge)
        if answer.offers and (best is None or answer.offers[0].start < best.offers[0].start):
            best = answer
            if soonest is not None and best.offers[0].start <= soonest:
                return best
    if best is None or soonest is None:
        return best or (across if len(sizes) <= MOST + 1 else look(dict(_largest(whole))))
    return Answer(tuple(_with_earlier(best.offers, across.offers[0], at_most)))


def _largest(sizes: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the largest of several pledges, to explain why even that isn't enough."""
    return [max(sizes.items(), key=lambda each: each[1])]


def _with_earlier(offers: Sequence[Offer], earlier: Offer, at_most: int) -> list[Offer]:
    """Add an offer that starts earlier because it draws on several pledges, and mark it and the first of the others."""
    first = replace(offers[0], draws="alone")
    return [replace(earlier, draws="across"), first, *offers[1:]][: max(at_most, 1)]


def describe_why(offer: Offer) -> str:
    """Describe why an offer is in its set: `earliest`, or `earliest, across srcnet + open`."""
    pledges = pledge_text(offer.pledge)
    draws = {"": "", "across": f"across {pledges}", "alone": f"of {pledges} alone"}[offer.draws]
    there = f"it already has {', '.join(offer.staging.there)}" if offer.staging.there else ""
    return ", ".join(words for words in (offer.why, draws, there) if words)
