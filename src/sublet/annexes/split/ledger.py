"""The relay's state: attempts and nodes, and how each message changes them. Pure: time comes in as `now`.

    queued -(stored)-> stored -(out)-> done
    any -(remove)-> revoked     a node's death: lost     the starter failed: failed

A stored attempt whose starter shuts down gracefully is asked to end first, and revoked only if that takes too long.
Revoked and lost attempts are void: their results aren't accepted, however late they come. A node is dead when it is
silent while the agent reports; a silent link says nothing about nodes, until its grace period is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

TRIES = 3  # failed starts of a job after which it is held with the reason
GONE = 120  # heartbeats of a node without an attempt that it was given, after which the attempt counts as lost
BEATS = 3  # heartbeats of a node without an attempt to stop, after which the node is known not to have it


class AttemptStage(StrEnum):
    """The state of an attempt."""

    QUEUED = "queued"
    STORED = "stored"
    DONE = "done"
    FAILED = "failed"
    REVOKED = "revoked"
    LOST = "lost"


OPEN = (AttemptStage.QUEUED, AttemptStage.STORED)


@dataclass
class OpenAttempt:
    """One job that is given to one node once."""

    name: str
    id: str  # the slot and the starter, as the starter names them
    node: int
    job_ad: str = ""
    sandbox: str = ""
    scratch: str = ""
    stage: AttemptStage = AttemptStage.QUEUED
    job: str = ""  # cluster and process
    streams: dict[str, str] = field(default_factory=dict)  # stream → the file in which its output appears while it runs
    is_void: bool = False  # whether, when revoked, it had failed or its node had been given up
    is_ending: bool = False  # whether its job was asked to end, and may take its time


@dataclass
class LedgerNode:
    """What is known about one node."""

    epoch: str
    beat: float  # when its last heartbeat came
    name: str = ""
    runs: int = 0
    ending: str = ""
    facts: dict[str, str] = field(default_factory=dict)


@dataclass
class LedgerLink:
    """The channel to the agent."""

    up: bool
    since: float
    heard: float
    times: int = 0


@dataclass
class Ledger:
    """The attempts and nodes of one lease."""

    nodes: int
    dead: float  # seconds of silence after which a node is dead
    grace: float  # seconds without a link after which all nodes are given up
    link: LedgerLink
    seen: dict[int, LedgerNode] = field(default_factory=dict)
    known: set[int] = field(default_factory=set)  # nodes that had reported before this relay started
    attempts: dict[str, OpenAttempt] = field(default_factory=dict)
    fenced: set[str] = field(default_factory=set)
    orders: list[dict[str, Any]] = field(default_factory=list)  # kills and fences, repeated on every new link
    failures: Counter[str] = field(default_factory=Counter)  # job → failed starts
    refused: Counter[str] = field(default_factory=Counter)  # results that came too late, by the state of their attempt
    missing: Counter[str] = field(default_factory=Counter)  # attempt → heartbeats of its node without it, in a row
    arriving: set[str] = field(default_factory=set)  # attempts whose results are being received

    # The link

    def note_connected(self, now: float) -> None:
        """Record a new channel; every node gets time to report again."""
        self.link = LedgerLink(True, now, now, self.link.times + 1)
        self.missing.clear()
        self.arriving.clear()
        for node in self.seen.values():
            node.beat = now

    def cut(self, now: float) -> None:
        """Record that the channel is gone."""
        if self.link.up:
            self.link = LedgerLink(False, now, self.link.heard, self.link.times)

    def note_heard(self, now: float) -> None:
        """Record that the agent has reported."""
        self.link.heard = now

    # Nodes

    def beat(self, number: int, report: dict[str, Any], now: float) -> None:
        """Record a node's heartbeat."""
        epoch = str(report.get("epoch", ""))
        self.known.discard(number)
        runs, ending = len(report.get("runs") or ()), str(report.get("ending", ""))
        facts = {str(name): str(value) for name, value in (report.get("facts") or {}).items()}
        self.seen[number] = LedgerNode(epoch, now, str(report.get("node", "")), runs, ending, facts)
        runs_there = set(map(str, report.get("runs") or ()))
        for attempt in self.attempts.values():
            if attempt.node == number and attempt.stage in (AttemptStage.STORED, AttemptStage.REVOKED):
                is_missing = attempt.name not in runs_there and attempt.name not in self.arriving
                self.missing[attempt.name] = self.missing[attempt.name] + 1 if is_missing else 0

    def pulse(self, number: int, now: float) -> None:
        """Record that a node lives, but has no room to report more."""
        if number in self.seen:
            self.seen[number].beat = now

    def alive(self, number: int, now: float) -> bool | None:
        """Whether a node lives; None if it hasn't reported yet, so nothing may start there and nothing is evicted."""
        node = self.seen.get(number)
        if node is None:
            missing = number in self.known and self.link.up and now - self.link.since > self.dead
            return False if missing else None
        if node.epoch in self.fenced:
            return False
        if self.link.up:
            return self.link.heard - node.beat <= self.dead
        return now - self.link.since <= self.grace

    def bury(self, now: float) -> list[LedgerNode]:
        """Give up dead nodes: fence their epochs, and mark their attempts as lost; return these nodes."""
        dead = []
        for number, node in self.seen.items():
            if node.epoch not in self.fenced and self.alive(number, now) is False:
                self.fenced.add(node.epoch)
                self.orders.append({"op": "fence", "epoch": node.epoch})
                for attempt in self.attempts.values():
                    if attempt.node == number and attempt.stage in OPEN:
                        attempt.stage = AttemptStage.LOST
                dead.append(node)
        return dead

    # Attempts

    def submit(self, attempt: OpenAttempt) -> OpenAttempt:
        """Add an attempt; adding it again changes nothing."""
        return self.attempts.setdefault(attempt.name, attempt)

    def note_stored(self, name: str) -> bool:
        """Record that the spool has an attempt; return whether that is news."""
        attempt = self.attempts.get(name)
        if attempt is None or attempt.stage is not AttemptStage.QUEUED:
            return False
        attempt.stage = AttemptStage.STORED
        self.missing.pop(name, None)
        return True

    def accepts(self, name: str) -> bool:
        """Whether a result of this attempt may reach its job; count it if it may not."""
        attempt = self.attempts.get(name)
        if attempt is not None and attempt.stage in OPEN:
            return True
        self.refused[attempt.stage if attempt else "unknown"] += 1
        return False

    def is_given_up(self, name: str) -> bool:
        """Whether an attempt was revoked or lost."""
        attempt = self.attempts.get(name)
        return attempt is not None and attempt.stage in (AttemptStage.REVOKED, AttemptStage.LOST)

    def note_delivered(self, name: str) -> OpenAttempt | None:
        """Record that an attempt's result is complete; return None if it was given up meanwhile."""
        attempt = self.attempts.get(name)
        if attempt is None or attempt.stage not in OPEN:
            return None
        attempt.stage = AttemptStage.DONE
        return attempt

    def note_failed(self, name: str) -> OpenAttempt | None:
        """Record that an attempt failed to start; return None if it was given up meanwhile."""
        attempt = self.attempts.get(name)
        if attempt is None or attempt.stage not in OPEN:
            return None
        attempt.stage = AttemptStage.FAILED
        self.failures[attempt.job] += 1
        return attempt

    def gives_up(self, attempt: OpenAttempt) -> bool:
        """Whether the attempt's job has failed to start too often."""
        return self.failures[attempt.job] >= TRIES

    def ask_to_end(self, id: str, now: float) -> list[OpenAttempt]:
        """Have the job of a starter asked to end, once; return nothing if it can't be, or has been asked already."""
        stopped = {order["node"] for order in self.orders if order["op"] == "stop"}
        asked = [
            attempt
            for attempt in self.attempts.values()
            if (attempt.id, attempt.stage, attempt.is_ending) == (id, AttemptStage.STORED, False)
            and self.link.up
            and attempt.node not in stopped
            and self.alive(attempt.node, now)
        ]
        for attempt in asked:
            attempt.is_ending = True
            self.orders.append({"op": "kill", "attempt": attempt.name, "node": attempt.node, "gently": True})
        return asked

    def list_ending(self, id: str) -> list[OpenAttempt]:
        """List the attempts of a starter whose jobs were asked to end, and haven't yet."""
        return [a for a in self.attempts.values() if a.id == id and a.is_ending and a.stage in OPEN]

    def revoke(self, id: str) -> list[OpenAttempt]:
        """Revoke the attempts of a starter that gave up; none of their results may be delivered."""
        gone = [
            attempt
            for attempt in self.attempts.values()
            if attempt.id == id and attempt.stage in (*OPEN, AttemptStage.LOST, AttemptStage.FAILED)
        ]
        for attempt in gone:
            attempt.is_void = attempt.stage not in OPEN
            attempt.stage = AttemptStage.REVOKED
            self.missing.pop(attempt.name, None)
            self._forget_orders(attempt.name)
            self.orders.append({"op": "kill", "attempt": attempt.name, "node": attempt.node})
        return gone

    def list_settled(self) -> list[str]:
        """List revoked attempts that no node has: it failed or died, never took them, or ended them in time."""
        if not self.link.up:
            return []  # the spool may still have them
        revoked = (attempt for attempt in self.attempts.values() if attempt.stage is AttemptStage.REVOKED)
        return [attempt.name for attempt in revoked if attempt.is_void or self.missing[attempt.name] >= BEATS]

    def list_vanished(self) -> list[str]:
        """List stored attempts that neither the spool nor their node has any more."""
        stored = (attempt.name for attempt in self.attempts.values() if attempt.stage is AttemptStage.STORED)
        return [name for name in stored if self.missing[name] >= GONE]

    def list_queued(self) -> Iterator[OpenAttempt]:
        """Return the attempts that the spool doesn't have yet."""
        return (attempt for attempt in self.attempts.values() if attempt.stage is AttemptStage.QUEUED)

    def forget(self, name: str) -> None:
        """Delete an attempt that is over."""
        self.attempts.pop(name, None)
        self.missing.pop(name, None)
        self.arriving.discard(name)
        self._forget_orders(name)

    def _forget_orders(self, name: str) -> None:
        self.orders[:] = [order for order in self.orders if order.get("attempt") != name]

    # For the bridge's startd

    def probe(self, number: int, now: float, clock: int) -> str:
        """Return what a node's slots report about its far half, in the form that the startd's cron reads."""
        node, alive = self.seen.get(number), self.alive(number, now)
        evict = [
            a.id.split("-")[0] for a in self.attempts.values() if a.node == number and a.stage is AttemptStage.FAILED
        ]
        ready = alive is True and self.link.up and not (node and node.ending)
        lines = [
            f"SubletFarAlive = {'undefined' if alive is None else alive}",
            f"SubletFarReady = {ready}",
            f"SubletFarLink = {self.link.up}",
            f'SubletFarNode = "{clean(node.name if node else "")}"',
            f'SubletFarEvict = "{clean(",".join(evict))}"',
            f"SubletFarTime = {clock}",
        ]
        return "\n".join(lines) + "\n"


def clean(text: str) -> str:
    """Remove characters that would end a string in an ad."""
    return "".join(c for c in text if c.isprintable() and c not in '"\\')
