"""Many people who ask and accept at the same time; run as a program, they do it in a process of their own."""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from sublet.booking.model.offer import Take
from sublet.booking.model.pledge import pool_of
from sublet.booking.model.request import GIB, Window
from sublet.booking.model.session import Session
from sublet.booking.model.shape import Shape
from sublet.kernel.errors import NotBookable
from sublet.store import Store, Tx
from tests.contract.stored import HOUR, MINUTE, NODES, NOON, accept, offer_some
from tests.nursery import Begun, talking

DAY = 8  # hours in which all want to run: far fewer than are wanted


@dataclass
class Told:
    """What the store has acknowledged."""

    accepted: dict[str, list[str]] = field(default_factory=dict)  # session → its nodes
    held: set[str] = field(default_factory=set)  # offer sets that nobody answered
    refused: int = 0


DRAWN = (["srcnet"], ["open"], ["srcnet", "open"])  # people may draw on one part, on the other, or on both


def ask(tx: Tx, person: str, cores: int, nodes: int, pledge: str) -> tuple[list[Session], tuple[Take, ...]] | None:
    """Hold the earliest free time, as three offers."""
    windows = [Window(NOON, NOON + (DAY - 1) * HOUR + MINUTE)]
    slot = tx.books.calendar("here").earliest(Shape(cores, cores * GIB), nodes, HOUR, windows, pledge=pledge)
    if slot is None:
        return None
    takes = tuple(Take(node, slot.start, slot.start + HOUR, cores, cores * GIB) for node in slot.nodes)
    takes += (Take(pledge, slot.start, slot.start + HOUR, size=cores * nodes, pool=True),)
    return offer_some(tx, person, hold=takes), takes


def take_part(store: Store, seed: int, rounds: int, tell: Callable[[str, str, list[str]], None]) -> None:
    """One person: ask, then accept, decline, or walk away; sometimes grab a node without asking."""
    choose = random.Random(seed)
    person = f"person{seed}"
    for _ in range(rounds):
        if choose.random() < 0.2:
            grab(store, choose, tell)
            continue
        cores, nodes = choose.randint(1, 4), choose.randint(1, 2)
        answer = store.write_sync(lambda tx, c=cores, n=nodes: ask(tx, person, c, n, pool_of(DRAWN[seed % 3])))
        if answer is None:
            tell("refused", "", [])
            continue
        sessions, takes = answer
        chosen = choose.choice(sessions)
        what = choose.random()
        if what < 0.7:
            store.write_sync(lambda tx, id=chosen.id, t=takes: accept(tx, id, NOON, t))
            tell("accepted", chosen.id, [take.where for take in takes])
        elif what < 0.9:
            store.write_sync(lambda tx, key=chosen.offerset: tx.books.release("here", key))
        else:
            tell("held", chosen.offerset, [])


def grab(store: Store, choose: random.Random, tell: Callable[[str, str, list[str]], None]) -> None:
    """Try to book a whole node at some time, whether it is free or not."""
    start = NOON + choose.randrange(DAY * 4) * 15 * MINUTE
    take = Take(choose.choice(NODES).name, start, start + HOUR, 4, GIB)
    key = f"grab-{choose.getrandbits(64):016x}"
    try:
        store.write_sync(lambda tx: tx.books.take("here", key, [take]))
    except NotBookable:
        tell("refused", "", [])
    else:
        tell("accepted", key, [take.where])


def crowd(store: Store, seeds: range, rounds: int, tell: Callable[[str, str, list[str]], None]) -> None:
    """One thread for each person, all at once."""
    gate = threading.Barrier(len(seeds))

    def one(seed: int) -> None:
        gate.wait()
        take_part(store, seed, rounds, tell)

    with ThreadPoolExecutor(len(seeds)) as threads:
        list(threads.map(one, seeds))


def note(told: Told, what: str, key: str, nodes: list[str]) -> None:
    """Remember what was acknowledged."""
    if what == "accepted":
        told.accepted[key] = nodes
    elif what == "held":
        told.held.add(key)
    else:
        told.refused += 1


def start(url: str, seeds: range, rounds: int) -> Begun:
    """The same in a process of its own, which prints what was acknowledged, line by line."""
    return talking("tests.contract.crowd", [url, str(seeds.start), str(seeds.stop), str(rounds)], os.environ)


def go(*processes: Begun) -> None:
    """Wait until all of them have opened the store, then let them begin together."""
    for process in processes:
        assert next(process.lines()) == "ready\n"
    for process in processes:
        process.hears("go")


def main() -> None:
    """Take part in another process."""
    url, first, last, rounds = sys.argv[1:]
    lock = threading.Lock()

    def tell(what: str, key: str, nodes: list[str]) -> None:
        with lock:
            print(json.dumps([what, key, nodes]), flush=True)

    store = Store.open(url)
    store.write_sync(lambda tx: tx.books.calendar("here"))
    print("ready", flush=True)
    sys.stdin.readline()
    crowd(store, range(int(first), int(last)), int(rounds), tell)
    store.close()


if __name__ == "__main__":
    main()
