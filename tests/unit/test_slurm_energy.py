"""Energy that a cluster's accounting tells: read as Slurm prints it, waited for a moment, and never made up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sublet.booking.model.job import JobState, State
from sublet.booking.model.session import End, EndKind, Usage
from sublet.booking.model.together import Joined, together
from sublet.platforms.batch.energy import JOULES, LATE, EnergyAccounts
from sublet.platforms.batch.watch import SiteWatch
from sublet.platforms.slurm.readers import counts_energy
from sublet.platforms.slurm.rows import read_energy
from sublet.platforms.slurm.scheduler import SLURM
from tests.unit.test_slurm_watch import Site

pytestmark = pytest.mark.anyio
RECORDED = Path(__file__).parents[1] / "recorded/slurm/22.05.8/energy-sacct.txt"
ENDED = JobState(State.ENDED, End(EndKind.EXITED, 0, usage=Usage(wall=2.0)))


def test_energy_is_read_of_jobs_that_are_over_by_their_steps_and_parts() -> None:
    assert read_energy(RECORDED.read_text()) == {"try1": 600, "bag/0": 300, "bag/1": 300, "blind": 0}


@pytest.mark.parametrize(
    ("text", "joules"),
    [
        ("7|COMPLETED|900|k\n7.batch|COMPLETED|600|batch\n", 900),  # the job itself has it
        ("7|COMPLETED|0|k\n7.batch|COMPLETED|600|batch\n7.0|COMPLETED|700|sim\n", 700),  # steps overlap
        ("7|CANCELLED by 1000|18446744073709551614|k\n", 0),  # no value
        ("7|FAILED||k\nsacct: error: words\n", 0),
    ],
)
def test_a_job_without_a_number_of_its_own_has_that_of_its_largest_step(text: str, joules: int) -> None:
    assert read_energy(text) == {"k": joules}


def test_a_site_counts_energy_if_its_nodes_have_a_counter_and_accounting_keeps_it() -> None:
    kept = {
        "AcctGatherEnergyType": "acct_gather_energy/rapl",
        "AccountingStorageType": "accounting_storage/slurmdbd",
    }
    assert counts_energy(kept)
    assert not counts_energy(kept | {"AcctGatherEnergyType": "(null)"})
    assert not counts_energy(kept | {"AcctGatherEnergyType": "acct_gather_energy/none"})
    assert not counts_energy(kept | {"AccountingStorageType": "(null)"})
    assert not counts_energy({})


async def test_an_end_is_told_with_its_energy_once_accounting_knows_that_it_is_over() -> None:
    site, watch = Site(), SiteWatch(SLURM, "far", every=0, look=0, patience=0)
    watch.energy.is_kept = True
    site.has("k", code=0)
    site.past = "7|RUNNING||k"
    assert await site.ask(watch, "k") == [State.RUNNING]
    site.past = "7|COMPLETED||k\n7.batch|COMPLETED|7200|batch"
    assert await site.ask(watch, "k") == [State.ENDED]
    state = (await watch.ask(site, "/root", ["k"]))["k"]  # type: ignore[arg-type]
    assert state.end
    assert state.end.usage
    assert (state.end.usage.energy, state.end.usage.energy_source, state.end.usage.wall) == (0.002, "measured", 2)
    assert site.asked.count("sacct") == 2, "what has ended is not asked for again"


async def test_accounting_that_never_knows_is_not_waited_for_and_makes_nothing_up() -> None:
    site, accounts = Site(), EnergyAccounts(SLURM)
    accounts.is_kept = True
    assert (await accounts.add(site, {"k": ENDED}, 0.0))["k"].state is State.RUNNING  # type: ignore[arg-type]
    assert await accounts.add(site, {"k": ENDED}, LATE) == {"k": ENDED}  # type: ignore[arg-type]
    assert await accounts.add(site, {"k": ENDED}, LATE) == {}, "it was told"  # type: ignore[arg-type]


async def test_a_site_that_counts_no_energy_is_not_asked_for_it() -> None:
    site, watch = Site(), SiteWatch(SLURM, "far", every=0, look=0, patience=0)
    site.has("k", code=0)
    assert await site.ask(watch, "k") == [State.ENDED]
    assert "sacct" not in site.asked


def test_the_energy_of_parts_adds_up_if_it_was_measured_of_all() -> None:
    def used(joules: int) -> JobState:
        assert ENDED.end
        usage = Usage(energy=joules / JOULES, energy_source="measured" if joules else "")
        return replace(ENDED, end=replace(ENDED.end, usage=usage))

    whole = together([used(300), used(500)], Joined(0)).end
    assert whole
    assert whole.usage
    assert (whole.usage.energy * JOULES, whole.usage.energy_source) == (pytest.approx(800), "measured")
    some = together([used(300), used(0)], Joined(0)).end
    assert some
    assert some.usage
    assert (some.usage.energy, some.usage.energy_source) == (0, "")
