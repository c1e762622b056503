"""`kill -9` of a service between two calls to OAR, Grid Engine or Slurm: one job, one reservation, and nothing left."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from sublet.booking.calls.platforms import sweep
from sublet.client import Client, Offer
from sublet.kernel.errors import SubletError
from sublet.kernel.faults import RESERVATION_POINTS
from tests.engines.batch_sites import ENGINES, FILES, BatchSite, settings_of
from tests.serving import Serving, eventually

pytestmark = pytest.mark.engines
PATIENCE = 300.0  # seconds: a scheduler that shares a busy machine takes minutes


def list_points(act: str, every_time: str) -> list[ParameterSet]:
    """The points before and after it: one of them in every run, all of them in long ones."""
    points = [point for point in RESERVATION_POINTS if point.startswith(act)]
    return [pytest.param(point, marks=[] if point.endswith(every_time) else [pytest.mark.soak]) for point in points]


@dataclass(frozen=True)
class CrashSite:
    """A site, and a service that can be killed."""

    kind: str
    machine: BatchSite

    def serve(self, home: Path) -> Serving:
        """A service with this site alone, which looks often."""
        values = {"kind": self.kind, **settings_of(self.machine), **ENGINES[self.kind].settings}
        values |= {"poll": "1s", "look": "1s", "patience": "2s", "lead": "15s", "reserves_within": "15s"}
        ssh = values.pop("ssh")
        lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
        lines += ["[platforms.far.ssh]", *(f"{name} = {json.dumps(value)}" for name, value in ssh.items())]
        home.mkdir()
        text = "\n".join(['answer_within = "40s"', "[platforms.far]", *lines, ""])
        (home / "sublet.toml").write_text(text)
        return Serving(home, environment={"SUBLET_HOLD": "2m"})

    def count_jobs(self, key: str) -> int:
        """How many jobs a session ever had that is over."""
        return int(self.machine.run_as_person(ENGINES[self.kind].jobs.replace("{key}", key)))

    def is_empty(self) -> bool:
        """Whether nothing of the person's is there: no job, no reservation, no file."""
        left = self.machine.run_as_person(ENGINES[self.kind].left).split()
        return left[-1:] == ["0"] and not self.machine.run_as_person(FILES).strip()

    def count_runs(self, key: str) -> int:
        """How often a session's command has run."""
        return len(self.machine.run_as_person(f"cat ran-{key} 2>/dev/null; :").split())


@pytest.fixture(scope="module", params=ENGINES)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CrashSite]:
    with ENGINES[request.param].start(tmp_path_factory.mktemp("crashes") / "machine") as machine:
        yield CrashSite(request.param, machine)


@pytest.fixture
def serving(site: CrashSite, tmp_path: Path) -> Iterator[Serving]:
    service = site.serve(tmp_path / "home")
    try:
        yield service
    finally:
        service.stop()


def ask(client: Client, terms: str, seconds: float = 1) -> Offer:
    """An offer of these terms for a command that writes down that it ran; a busy site may reserve too late at first."""
    script = f"echo ran >>~/ran-$SUBLET_SESSION; sleep {seconds}"

    def find() -> Offer | None:
        offers = client.ask(run=["sh", "-c", script], platform="far", time="2m", cores=1, memory="64MiB")
        return next((offer for offer in offers if offer.view.terms.kind == terms), None)

    offer = eventually(find, f"an offer that is {terms}", PATIENCE, 1.0)
    assert isinstance(offer, Offer)
    return offer


def restart_after_death(serving: Serving) -> Client:
    assert serving.died() == -9, serving.log()
    return serving.start()


@pytest.mark.parametrize("terms", ["predicted", pytest.param("booked", marks=pytest.mark.soak)])
@pytest.mark.parametrize("point", [pytest.param("submit.before", marks=pytest.mark.soak), "submit.after"])
def test_a_service_that_is_killed_there_finds_its_one_job_again(
    site: CrashSite, serving: Serving, point: str, terms: str
) -> None:
    client = serving.start(SUBLET_CRASH_AT=point)
    offer = ask(client, terms)
    with contextlib.suppress(SubletError):
        offer.accept()
    ended = restart_after_death(serving).session(offer.id).wait(timeout=PATIENCE)
    assert (ended.phase, ended.end.code) == ("COMPLETED", 0), (ended.end, serving.log())
    ended.delete()
    eventually(site.is_empty, "nothing to be left", PATIENCE, 1.0)
    eventually(lambda: site.count_jobs(ended.id), "its record", PATIENCE, 1.0)  # Grid Engine writes it a while later
    assert (site.count_jobs(ended.id), site.count_runs(ended.id)) == (1, 1)


@pytest.mark.parametrize("point", list_points("reserve", "after"))
def test_what_was_reserved_for_a_service_that_died_is_given_up_by_the_next(
    site: CrashSite, serving: Serving, point: str
) -> None:
    client = serving.start(SUBLET_CRASH_AT=point)
    with contextlib.suppress(SubletError):
        ask(client, "booked")
    assert serving.died() == -9, serving.log()
    site.machine.run_as_person("touch -d '-5 minutes' .sublet/reservations/*/owner 2>/dev/null; :")
    serving.start()
    eventually(site.is_empty, "nothing to be left", PATIENCE, 1.0)


@pytest.mark.parametrize("point", list_points("give_up", "before"))
def test_a_service_that_is_killed_while_it_gives_up_a_reservation_gives_it_up(
    site: CrashSite, serving: Serving, point: str
) -> None:
    client = serving.start(SUBLET_CRASH_AT=point)
    with contextlib.suppress(SubletError):
        ask(client, "booked").reject()
    restart_after_death(serving)
    eventually(site.is_empty, "nothing to be left", PATIENCE, 1.0)


def test_nothing_is_left_after_a_cancel_and_a_sweep(site: CrashSite, serving: Serving) -> None:
    client = serving.start(SUBLET_CRASH_AT="running.after")
    offer = ask(client, "predicted", seconds=600)
    with contextlib.suppress(SubletError):
        offer.accept()
    client = restart_after_death(serving)
    client.session(offer.id).cancel()
    ended = client.session(offer.id).wait(timeout=PATIENCE)
    assert ended.phase == "CANCELLED"
    ended.delete()
    client.do(sweep("far"))
    eventually(site.is_empty, "nothing to be left", PATIENCE, 1.0)
