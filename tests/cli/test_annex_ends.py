"""`sublet annex shutdown` asks in a terminal before it stops jobs that run, and nowhere else."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.canned import Said
from tests.cli.conftest import Serve, Type
from tests.cli.test_annexes import ANNEX, DEAD, ENDED, NODE, UP
from tests.real.terminal import Terminal

pytestmark = pytest.mark.usefixtures("in_utc")
SHUTDOWN = [sys.executable, "-m", "sublet.cli", "annex", "shutdown"]


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (("example",), "3 jobs run there now: 3 on exp-1-01."),
        (("example#1", "--node", "0"), "End 1 node of example#1?"),
    ],
)
def test_before_jobs_are_stopped_whoever_sits_there_is_asked(
    words: tuple[str, ...], asked: str, canned: Serve, tmp_path: Path
) -> None:
    name = words[0].replace("#", "%23")
    answers = {f"GET /v1/annexes/{name}": Said(replace(ANNEX, leases=(UP,)))}
    service = canned(answers | {f"POST /v1/annexes/{name}/shutdown": Said(replace(ANNEX, leases=(ENDED,)))})
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "SUBLET_HOME": str(tmp_path)}
    for answer, sent in (("n", 0), ("y", 1)):
        with Terminal([*SHUTDOWN, *words], environment) as terminal:
            terminal.reads(asked)
            terminal.reads("[y/N]:")
            terminal.types(answer)
            terminal.ends()
        assert len([one for one in service.heard if one.target.endswith("/shutdown")]) == sent
    with Terminal([*SHUTDOWN, "--yes", *words], environment) as terminal:
        terminal.ends()
    assert len([one for one in service.heard if one.target.endswith("/shutdown")]) == 2


def test_nobody_is_asked_where_no_job_runs_or_nobody_sits(type_in: Type, canned: Serve, tmp_path: Path) -> None:
    idle = replace(UP, nodes=(replace(NODE, running=0), DEAD))
    ended = {"POST /v1/annexes/example/shutdown": Said(replace(ANNEX, leases=(ENDED,)))}
    service = canned({"GET /v1/annexes/example": Said(replace(ANNEX, leases=(UP,))), **ended})
    assert type_in("annex", "shutdown", "example").out == "example#1 has ended.\n"
    service.answers["GET /v1/annexes/example"] = Said(replace(ANNEX, leases=(idle,)))
    environment = {**os.environ, "TERM": "xterm", "SUBLET_HOME": str(tmp_path)}
    with Terminal([*SHUTDOWN, "example"], environment) as terminal:
        terminal.reads("example#1 has ended.")
