"""When a provisioner gives back the lease of its DAG."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from sublet.annexes.cli.dag_provisioner import QUIET, has_ended, is_over, lease_for
from sublet.annexes.views.annexes import DetailsView, LeaseAsk, LeaseView
from sublet.annexes.views.jobs import DagView
from sublet.client.call import Call
from sublet.client.link import Link
from sublet.kernel.errors import AnnexInUse

BEGAN = datetime(2026, 11, 2, tzinfo=UTC)
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


@pytest.mark.parametrize("state", ["running", "held", "idle", "suspended"])
def test_a_service_node_keeps_its_lease_until_its_dag_has_left_however_quiet_it_is(state: str) -> None:
    assert not has_ended(replace(DAG, state=state, only_provisioner=True, queued=1), QUIET * 1000)
    assert has_ended(replace(DAG, state="completed"), 0)


class Leases:
    """A service that remembers the leases that were made under a key."""

    def __init__(self) -> None:
        """There are none yet."""
        self.made: dict[str, LeaseView] = {}

    def do(self, call: Call[Any]) -> Any:
        """Lease nodes once for each key."""
        key = call.more["Idempotency-Key"]
        if key.endswith("create") and key not in self.made and any(one.state == "up" for one in self.made.values()):
            raise AnnexInUse(name="example", leases="example#1")
        number = len(self.made) + 1
        lease = LeaseView(
            id=key, name=f"example#{number}", number=number, state="up", details=DetailsView(), created=BEGAN
        )
        return self.made.setdefault(key, lease)


def test_a_provisioner_that_is_started_again_has_the_lease_that_it_made_unless_that_has_ended() -> None:
    leases = Leases()

    def lease(job: str) -> str:
        return lease_for(cast(Link, leases), LeaseAsk(name="example"), job).name

    assert [lease(job) for job in ("12.0", "13.0", "12.0", "13.0")] == ["example#1", "example#2"] * 2
    leases.made = {key: replace(made, state="ended") for key, made in leases.made.items()}
    assert lease("13.0") == "example#3"
