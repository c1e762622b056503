"""Pledges: parts of a platform's capacity, each with its own rule of who may use it; what is not pledged is *open*.

A pledge is a number of cores, not certain nodes. Whoever may draw on several has whatever is left of any of them: what
is booked at a moment fits exactly if no set of pledges is drawn on for more than its size by those who may draw on
nothing outside of it (Hall's theorem). So each set is one bound in the calendar, and nothing is ever moved about.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

from sublet.booking.model.offer import Answer, Offer, Reason

OPEN = "open"  # what is not pledged: for whoever may use the platform
MOST = 6  # pledges of one platform that a session can draw on together; of more, it draws on one alone
ALL_PLEDGED = Reason("urn:resource-limit", "compute", "Every core of this platform is pledged to others.")
MARK = "pledge:"  # begins the names of their pools in a calendar
OTHER_MARK = "pledge@"  # the same, of what is pledged beside cores
SCHEDULED = "pledge@scheduled:"  # begins a pool that only says that a pledge is not always in force


def order_names(names: Iterable[str]) -> tuple[str, ...]:
    """Names as people read them: by the alphabet, what is open last."""
    return tuple(sorted(set(names), key=lambda name: (name == OPEN, name)))


def pledge_text(names: Iterable[str]) -> str:
    """`srcnet`, or `srcnet + open`."""
    return " + ".join(order_names(names))


def pool_of(names: Iterable[str]) -> str:
    """The pool from which a booking takes its cores that may draw on any of these; empty if there are none."""
    known = order_names(names)
    return f"{MARK}{'+'.join(known)}" if known else ""


def storage_pool(pool: str) -> str:
    """The pool from which the same booking takes its storage."""
    return f"{OTHER_MARK}storage:{pool.removeprefix(MARK)}"


def is_pledge(pool: str) -> bool:
    """Whether a pool is of pledges, and not of storage."""
    return pool.startswith((MARK, OTHER_MARK))


def pools_of(pledges: Mapping[str, int], cores: int) -> dict[str, int]:
    """The pools of a platform's pledges, and of what is open of so many cores; none where nothing is pledged."""
    if not pledges:
        return {}
    return {pool_of([name]): size for name, size in {**pledges, OPEN: open_of(pledges, cores)}.items()}


def open_of(pledges: Mapping[str, int], cores: int) -> int:
    """How many of so many cores nobody has a pledge of."""
    return max(cores - sum(pledges.values()), 0)


def sizes_in(pools: Mapping[str, int]) -> dict[str, int]:
    """The pledges among a calendar's pools, and how many cores each has; what is open too.

    One of other amounts alone draws on the cores that are open; what is pledged at certain hours is open at others.
    """
    cores = {pool.removeprefix(MARK): size for pool, size in pools.items() if pool.startswith(MARK)}
    if cores:
        at_times = (pool.removeprefix(SCHEDULED) for pool in pools if pool.startswith(SCHEDULED))
        cores[OPEN] = cores.get(OPEN, 0) + sum(cores.get(name, 0) for name in at_times)
    others = {pool.partition(":")[2] for pool in pools if pool.startswith(OTHER_MARK)}
    return {**dict.fromkeys(sorted(others), cores.get(OPEN, 0)), **cores}


def find_sources(pool: str, sizes: Mapping[str, int]) -> frozenset[str]:
    """What a booking in a pool may draw on; a pledge that is no more has become open."""
    return frozenset(name if name in sizes else OPEN for name in pool.removeprefix(MARK).split("+"))


def bounds(sizes: Mapping[str, int]) -> dict[frozenset[str], int]:
    """Each set of pledges, and how much those may book together who draw on nothing else; all of them is the nodes."""
    return {some: sum(sizes[name] for name in some) for some in list_sets(sizes)}


def list_sets(names: Collection[str]) -> list[frozenset[str]]:
    """The sets of pledges that are bounded; of many pledges each alone, because nobody draws on several of those."""
    largest = len(names) if len(names) <= MOST + 1 else 2
    return [frozenset(some) for count in range(1, largest) for some in combinations(names, count)]


def shares(pledge: Mapping[str, int]) -> dict[str, Fraction]:
    """In which parts a session counts in each of the pledges that it draws on: by their sizes."""
    total = sum(pledge.values())
    return {name: Fraction(pledge[name], total) if total else Fraction(1, len(pledge)) for name in order_names(pledge)}


def find_drawn(booked: Mapping[str, int], sizes: Mapping[str, int]) -> dict[str, int]:
    """What is drawn of each pledge, where so much is booked in the pools; what several share, by their sizes."""
    drawn = dict.fromkeys(sizes, Fraction(0))
    for pool, cores in booked.items():
        for name, share in shares({name: sizes.get(name, 0) for name in find_sources(pool, sizes)}).items():
            drawn[name] = drawn.get(name, Fraction(0)) + cores * share
    return {name: round(cores) for name, cores in drawn.items()}


Look = Callable[[Mapping[str, int]], Answer]  # the offers that draw on these pledges, the earliest first


def offers_within(names: Iterable[str], sizes: Mapping[str, int], least: int, at_most: int, look: Look) -> Answer:
    """Offers to someone who may draw on these pledges and needs so many cores at the least.

    They are under one pledge, what is open before others: that in which it can start first. Across all of them is what
    none of them could ever hold, and one more offer if it starts earlier.
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
    """The largest of several, for whoever is to be told why not even that will do."""
    return [max(sizes.items(), key=lambda each: each[1])]


def _with_earlier(offers: Sequence[Offer], earlier: Offer, at_most: int) -> list[Offer]:
    """One more that starts earlier because it draws on several; each knows which it is."""
    first = replace(offers[0], draws="alone")
    return [replace(earlier, draws="across"), first, *offers[1:]][: max(at_most, 1)]


def describe_why(offer: Offer) -> str:
    """Why an offer is in its set: `earliest`, `earliest, across srcnet + open`, `earliest, of open alone`."""
    pledges = pledge_text(offer.pledge)
    draws = {"": "", "across": f"across {pledges}", "alone": f"of {pledges} alone"}[offer.draws]
    there = f"it already has {', '.join(offer.staging.there)}" if offer.staging.there else ""
    return ", ".join(words for words in (offer.why, draws, there) if words)
