"""Leases and nodes that are drained: what pilots are told, what is refused, how it is undone, and what goes back."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sublet.annexes.model.annex import Pilot
from sublet.annexes.shrinking import GIVEN_BACK
from sublet.kernel.errors import BadRequest, NoLease, NotFound
from tests.contract.leases import leasing, made, running
from tests.contract.services import ME
from tests.contract.test_service_pilots import claim, piloting, sent, unpacked, value

pytestmark = pytest.mark.anyio


async def test_a_pilot_that_runs_hears_that_it_is_drained_and_that_it_is_no_more(tmp_path: Path) -> None:
    async with piloting(tmp_path) as service:
        lease, token = await sent(service)
        files = await claim(service, lease.id, 0, token)
        told = {"secret": value(files["values"], "secret"), "have": files["stamp"].strip()}
        await service.annexes.drains.drain_annex("example", (), ME)
        news = unpacked(await service.annexes.pilots.renew_pilot(lease.id, 0, told))
        assert "SubletDraining = True" in news["annex.conf"]
        late = await claim(service, lease.id, 1, token)
        assert "SubletDraining = True" in late["annex.conf"], "a node that comes later to a lease that is drained"
        await service.annexes.drains.undrain_annex("example#1", (), ME)
        news = unpacked(await service.annexes.pilots.renew_pilot(lease.id, 0, told | {"have": news["stamp"].strip()}))
        assert "SubletDraining = False" in news["annex.conf"]


async def test_nodes_are_named_by_number_or_name_and_the_first_goes_last(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        await running(service, nodes=2)
        with pytest.raises(BadRequest, match="carries the others"):
            await service.annexes.drains.drain_annex("example", ["c0"], ME)
        with pytest.raises(NotFound, match="no node c7"):
            await service.annexes.drains.drain_annex("example", ["c7"], ME)
        await service.annexes.drains.drain_annex("example", ["c1"], ME)
        nodes = (await service.annexes.status.annex_state("example", ME)).leases[0].nodes
        assert [node.draining for node in nodes] == [False, True]
        await service.annexes.drains.drain_annex("example", ["0"], ME)
        await service.annexes.drains.undrain_annex("example", ["1"], ME)
        nodes = (await service.annexes.status.annex_state("example", ME)).leases[0].nodes
        assert [node.draining for node in nodes] == [True, False]
        kinds = [event.kind for event in (await service.annexes.status.annex_history("example", ME))[1]]
        assert (kinds.count("lease.draining"), kinds.count("lease.undrained")) == (2, 1)


async def test_only_what_runs_can_be_drained(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        await made(service)
        with pytest.raises(NoLease) as refused:
            await service.annexes.drains.drain_annex("example", (), ME)
        assert "sublet annex cancel example" in refused.value.advice


async def test_a_node_that_was_drained_goes_back_while_the_others_go_on(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        lease, _ = await running(service, nodes=2)
        await service.annexes.drains.drain_annex("example", ["c1"], ME)
        now = service.now()
        await service.annexes.drains.look_after(now + timedelta(days=1))  # by a clock that is set right again
        await service.store.write(lambda tx: tx.pilots.end(lease.id, 1, now, "it was drained"))

        async def given() -> Pilot | None:
            await service.annexes.drains.look_after(service.now() + timedelta(minutes=1))
            return await service.store.read(lambda tx: tx.pilots.get(lease.id, 1))

        pilot = await given()
        assert pilot is not None
        assert pilot.why == GIVEN_BACK
        found = await service.store.read(lambda tx: tx.leases.get(lease.id))
        assert found is not None
        assert found.ended is None
