"""The plan of a run, made out of its seed alone: what clients do, and what is broken meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from tests.chaos.kinds import FAULTS, HERE, FaultKind

CLIENTS = ("http", "direct", "sdk", "run")
SIGNALS = (6, 10, 15)  # SIGABRT, SIGUSR1, SIGTERM: by its own hand
EVERY = 1.4  # seconds between two pieces of work, on average
FAULT_EVERY = 3.0  # seconds of rest between two faults, on average
LONGEST_WORK = 9.0
CALM = 1.5  # seconds before the first fault


@dataclass(frozen=True)
class Work:
    """One thing that a client wants to have run, and how it is to end."""

    name: str  # unique in a run: the session has it too
    client: str  # one of CLIENTS
    platform: str
    begins: float  # seconds after the beginning of the part
    lasts: float  # seconds that the program takes
    code: int = 0  # that it exits with
    signal: int = 0  # that it ends itself with, instead
    cancel_after: float | None = None  # seconds after it was accepted; None: nobody cancels it
    repeats: int = 1  # how often the same request is sent, under the same key

    def describe(self) -> str:
        """One line for people."""
        end = f"signal {self.signal}" if self.signal else f"exit {self.code}"
        cancelled = f", cancelled after {self.cancel_after:.1f} s" if self.cancel_after is not None else ""
        repeated = f", sent {self.repeats} times" if self.repeats > 1 else ""
        return f"{self.name} {self.client} on {self.platform}: {self.lasts:.1f} s, {end}{cancelled}{repeated}"


@dataclass(frozen=True)
class Fault:
    """One thing that is broken."""

    kind: str
    begins: float  # seconds after the beginning of the part; later if the one before takes longer
    lasts: float
    detail: str = ""
    target: int = 0  # which of several services

    def describe(self) -> str:
        """One line for people."""
        about = next(kind.about for kind in FAULTS if kind.name == self.kind)
        return f"{self.kind}{f' {self.detail}' if self.detail else ''}: {about} ({self.lasts:.2f} s, #{self.target})"


@dataclass(frozen=True)
class Part:
    """A stretch of the run with one kind of service."""

    name: str
    has: frozenset[str]  # what faults may need
    seconds: float
    services: int
    work: tuple[Work, ...]
    faults: tuple[Fault, ...]

    def describe(self) -> Iterable[str]:
        """Lines for people, in the order of time."""
        yield f"part {self.name}: {self.seconds:.0f} s, {len(self.work)} sessions, {len(self.faults)} faults"
        both: list[Work | Fault] = [*self.work, *self.faults]
        for step in sorted(both, key=lambda step: step.begins):
            yield f"  {step.begins:6.1f}  {step.describe()}"


@dataclass(frozen=True)
class Stage:
    """What a part of a run can use: plans are made for it."""

    name: str
    has: frozenset[str]
    platforms: tuple[str, ...] = (HERE,)  # one that is named twice gets twice as much work
    services: int = 1


@dataclass(frozen=True)
class Plan:
    """All of a run."""

    seed: int
    parts: tuple[Part, ...]

    def describe(self) -> Iterable[str]:
        """Lines for people."""
        yield f"seed {self.seed}"
        for part in self.parts:
            yield from part.describe()


def make_plan(seed: int, seconds: float, stages: Sequence[Stage]) -> Plan:
    """The same plan for the same seed, length and stages, whatever else is true."""
    each = seconds / len(stages)
    return Plan(seed, tuple(_make_part(Random(f"{seed} {stage.name}"), stage, each) for stage in stages))


def _make_part(random: Random, stage: Stage, seconds: float) -> Part:
    work = tuple(_make_work(random, stage, seconds))
    faults = tuple(_make_faults(random, stage, seconds))
    return Part(stage.name, stage.has, seconds, stage.services, work, faults)


def _make_work(random: Random, stage: Stage, seconds: float) -> Iterable[Work]:
    """Work from the first second to the last; one piece on each platform lasts as long as the faults."""
    for platform in dict.fromkeys(stage.platforms):
        yield Work(f"{stage.name}-{platform}-long", "sdk", platform, 0.0, seconds)
    begins, number = 0.3, 0
    while begins < seconds:
        number += 1
        yield _make_piece(random, f"{stage.name}-{number}", random.choice(stage.platforms), begins)
        begins += random.uniform(0.2, 2 * EVERY - 0.2)


def _make_piece(random: Random, name: str, platform: str, begins: float) -> Work:
    client = random.choice(CLIENTS)
    chance = random.random()
    return Work(
        name=name,
        client=client,
        platform=platform,
        begins=begins,
        lasts=random.uniform(0.1, 1.5) if random.random() < 0.6 else random.uniform(1.5, LONGEST_WORK),
        code=random.choice((0, 0, 0, 3, 17)),
        signal=random.choice(SIGNALS) if chance < 0.1 else 0,
        cancel_after=random.uniform(0.0, 4.0) if 0.1 <= chance < 0.25 and client != "run" else None,
        repeats=random.choice((1, 2, 3)) if client in ("http", "direct") else 1,
    )


def _make_faults(random: Random, stage: Stage, seconds: float) -> Iterable[Fault]:
    """Each kind that can be there once, in any order, then again by their weights."""
    possible = [kind for kind in FAULTS if kind.needs <= stage.has]
    first = random.sample(possible, len(possible))
    begins = CALM
    while begins < seconds:
        kind = first.pop() if first else random.choices(possible, [kind.weight for kind in possible])[0]
        fault = _make_fault(random, stage, kind, begins)
        yield fault
        begins += fault.lasts + random.uniform(0.5, 2 * FAULT_EVERY - 0.5)


def _make_fault(random: Random, stage: Stage, kind: FaultKind, begins: float) -> Fault:
    lasts = random.uniform(kind.shortest, kind.longest)
    return Fault(kind.name, begins, lasts, random.choice(kind.details), random.randrange(stage.services))
