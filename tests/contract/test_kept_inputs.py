"""What was brought to systems for jobs is known after a crash, and removed there."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from sublet.annexes.kept_inputs import FILE, KeptInputs
from sublet.kernel.errors import LoginNeeded
from sublet.platforms.port import KeptFile, Platform
from tests.contract.leases import PlayedService, leasing

pytestmark = pytest.mark.anyio
BIG = "sha256:12"


def test_a_service_that_starts_after_a_crash_knows_what_was_being_brought(tmp_path: Path) -> None:
    before = KeptInputs()
    before.load(tmp_path)
    before.find("cluster", BIG).former.add("lease-1")
    before.save()
    after = KeptInputs()
    after.load(tmp_path)
    found = after.find("cluster", BIG)
    assert (found.path, found.leases, found.former) == ("", set(), {"lease-1"})
    assert found.may_be_there
    del after.brought["cluster", BIG]
    after.save()
    last = KeptInputs()
    last.load(tmp_path)
    assert not last.brought


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"cluster": 1}', '{"cluster": {"sha256:1": 7}}'])
def test_a_damaged_record_stops_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    KeptInputs().load(tmp_path)


@contextlib.asynccontextmanager
async def beside(home: Path, cluster: Cluster) -> AsyncIterator[PlayedService]:
    """A service that knows this system too."""
    async with leasing(home) as service:
        before = service.platforms.by_name
        service.platforms.by_name = {**before, cluster.name: cast(Platform, cluster)}
        try:
            yield service
        finally:
            service.platforms.by_name = before


@dataclass
class Cluster:
    """A system that has one file, which a session there may still need."""

    name: str = "elsewhere"
    has: set[str] = field(default_factory=lambda: {BIG})
    is_needed: bool = False
    signed_in: bool = True

    async def let_go(self, *digests: str, idle: timedelta = timedelta(0)) -> Sequence[str]:
        if not self.signed_in:
            raise LoginNeeded(platform=self.name)
        gone = [] if self.is_needed else sorted(self.has & set(digests))
        self.has -= set(gone)
        return gone

    async def list_kept(self) -> Sequence[KeptFile]:
        return [cast(KeptFile, SimpleNamespace(digest=digest)) for digest in self.has]


async def test_inputs_of_a_lease_that_ended_while_the_power_was_off_are_removed(tmp_path: Path) -> None:
    cluster = Cluster(is_needed=True, signed_in=False)
    async with beside(tmp_path, cluster) as service:
        service.annexes.inputs._inputs.load(tmp_path / "pilots")
        service.annexes.inputs._inputs.find("elsewhere", BIG).former.add("a lease of before")
        for change in ({}, {"signed_in": True}, {"is_needed": False}):
            for name, value in change.items():
                setattr(cluster, name, value)
            assert cluster.has == {BIG}, change
            await service.annexes.inputs._let_go([])
        assert (cluster.has, service.annexes.inputs._inputs.brought) == (set(), {})
    again = KeptInputs()
    again.load(tmp_path / "pilots")
    assert not again.brought


async def test_what_could_not_be_brought_is_not_looked_for_forever(tmp_path: Path) -> None:
    async with beside(tmp_path, Cluster(has=set())) as service:
        for system in ("elsewhere", "a system that was removed"):
            service.annexes.inputs._inputs.find(system, BIG).former.add("a lease of before")
        await service.annexes.inputs._let_go([])
        assert not service.annexes.inputs._inputs.brought
