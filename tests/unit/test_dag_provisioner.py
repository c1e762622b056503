"""When a provisioner gives back the lease of its DAG."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sublet.annexes.cli.dag_provisioner import QUIET, is_over
from sublet.annexes.views.jobs import DagView

DAG = DagView(id="7", name="work.dag", state="running", total=2, queued=2)  # the provisioner, and one node that runs


@pytest.mark.parametrize("state", ["held", "idle", "suspended"])
def test_a_dag_that_can_go_on_keeps_its_lease_however_long_it_is_paused(state: str) -> None:
    assert not is_over(replace(DAG, state=state), QUIET * 1000)
    assert not is_over(replace(DAG, state=state, only_provisioner=True), 0)


@pytest.mark.parametrize("state", ["removed", "completed", "ending"])
def test_a_dag_that_has_ended_needs_its_lease_no_longer(state: str) -> None:
    assert is_over(replace(DAG, state=state), 0)


def test_a_running_dag_needs_its_lease_until_only_its_provisioner_is_left_or_nothing_happens_in_it() -> None:
    assert not is_over(DAG, 0)
    assert is_over(replace(DAG, only_provisioner=True), 0)
    assert is_over(DAG, QUIET + 1)
