"""The description of a batch system for the shared code: one value, which each system's package provides."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sublet.platforms.batch.failures import Failures
from sublet.platforms.batch.pace import Limiter
from sublet.platforms.batch.states import QueueRow, StateTable
from sublet.reach.port import Command, Outcome

Rows = dict[str, QueueRow]  # by session key; the parts of an array are KEY/N
Answers = Mapping[str, str]  # the output of a survey's commands, by name


def _has_no_limiter(answers: Answers) -> Limiter | None:
    return None


def _counts_no_energy(answers: Answers) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A scheduler: its name, its states, its commands with their readers, and its shell scripts."""

    title: str  # its name for people
    package: str  # the package with its `shell/`: submit.sh, cancel.sh and job.sh are described in scripts.py
    states: StateTable
    away: re.Pattern[str]  # matches messages that it is temporarily unavailable: it is asked again
    to_queue: Callable[[Failures], Command[Rows]]  # all jobs of the person
    to_remember: Callable[[Sequence[str], Sequence[str]], list[Command[Rows]]]  # by ids and keys: jobs that have ended
    survey: Mapping[str, Command[Outcome]]  # what a survey asks besides tools and disk space
    needed: tuple[str, ...]  # those without which there is no survey
    reaches_nodes: bool = False  # jobs of several nodes start programs on each by a script, nodes.sh
    can_pause: bool = False  # users may hold and stop their jobs: there is a pause.sh
    read_limiter: Callable[[Answers], Limiter | None] = _has_no_limiter  # its own limit on calls, from a survey
    to_energy: Callable[[Sequence[str]], Command[dict[str, int]]] | None = None  # by keys: joules of ended jobs
    counts_energy: Callable[[Answers], bool] = _counts_no_energy  # whether accounting has energy, from a survey

    def failures(self, platform: str) -> Failures:
        """Return the explanations of failures on a platform with this scheduler."""
        return Failures(platform, self.title, self.away)
