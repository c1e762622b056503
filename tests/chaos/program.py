"""The programs that sessions run: each bears witness, by O_APPEND, that it began and that it came to its end."""

from __future__ import annotations

from collections.abc import Iterable

from tests.chaos.evidence import Witness
from tests.chaos.plan import Work


def write_program(work: Work, witness: str) -> list[str]:
    """The words of a command that does a piece of work."""
    end = f"kill -{work.signal} $$; sleep 5" if work.signal else f"exit {work.code}"
    script = (
        f'echo "{work.name} begin $SUBLET_SESSION" >>{witness}; sleep {work.lasts:.2f}; '
        f'echo "{work.name} end $SUBLET_SESSION" >>{witness}; {end}'
    )
    return ["sh", "-c", script]


def write_request(work: Work, witness: str) -> dict[str, object]:
    """The request for it, in its short form: with time enough for whatever is broken meanwhile."""
    return {
        "run": write_program(work, witness),
        "name": work.name,
        "platform": work.platform,
        "time": f"{max(60, round(work.lasts) + 45)}s",
        "cores": 1,
        "memory": "64MiB",
    }


def read_witnesses(lines: Iterable[str]) -> tuple[Witness, ...]:
    """What the programs wrote."""
    return tuple(Witness(*line.split()) for line in lines if line.strip())
