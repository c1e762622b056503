"""A batch system, as far as what is shared has to know it: one value, which its own package makes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sublet.platforms.batch.failures import Failures
from sublet.platforms.batch.pace import Limiter
from sublet.platforms.batch.states import QueueRow, StateTable
from sublet.reach.port import Command, Outcome

Rows = dict[str, QueueRow]  # by the sessions' keys, those of an array as KEY/N
Answers = Mapping[str, str]  # what the commands of a survey printed, by their names


def _has_no_limiter(answers: Answers) -> Limiter | None:
    return None


def _counts_no_energy(answers: Answers) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Scheduler:
    """What it is called, its states, its commands with their readers, and where its pieces of shell are."""

    title: str  # as people call it
    package: str  # the package with its `shell/`: submit.sh, cancel.sh and job.sh are told in scripts.py
    states: StateTable
    away: re.Pattern[str]  # its words that it can't answer for now: it is asked again
    to_queue: Callable[[Failures], Command[Rows]]  # the person's own jobs, all of them
    to_remember: Callable[[Sequence[str], Sequence[str]], list[Command[Rows]]]  # by ids and keys: jobs that are over
    survey: Mapping[str, Command[Outcome]]  # what else a survey asks, beside tools and room
    needed: tuple[str, ...]  # those of them without which there is no survey
    reaches_nodes: bool = False  # jobs of several nodes start programs on each of them by a script: there is a nodes.sh
    can_pause: bool = False  # users may hold and stop their jobs: there is a pause.sh too
    read_limiter: Callable[[Answers], Limiter | None] = _has_no_limiter  # its own limit on calls, out of a survey
    to_energy: Callable[[Sequence[str]], Command[dict[str, int]]] | None = None  # by keys: joules of jobs that are over
    counts_energy: Callable[[Answers], bool] = _counts_no_energy  # whether a site's accounting has them, by a survey

    def failures(self, platform: str) -> Failures:
        """How failures are told on a platform with this scheduler."""
        return Failures(platform, self.title, self.away)
