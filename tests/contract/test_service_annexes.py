"""Annexes: named, renamed, opened, shared; leases are found by number and by day; templates are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from sublet.annexes.model.annex import Details
from sublet.kernel.errors import BadName, BadRequest, NameTaken, NotFound
from tests.contract.leases import TWO, leasing, made
from tests.contract.services import ME, OTHER

pytestmark = pytest.mark.anyio


async def test_an_annex_is_renamed_and_keeps_its_leases(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        lease = await made(service)
        await made(service, "other")
        renamed = await service.annexes.registry.rename("example", "better", ME)
        assert (renamed.id, renamed.name) == (lease.annex, "better")
        assert [one.id for one in (await service.annexes.registry.leases("better", ME))[1]] == [lease.id]
        with pytest.raises(NotFound):
            await service.annexes.registry.annex("example", ME)
        with pytest.raises(NameTaken):
            await service.annexes.registry.rename("better", "other", ME)
        with pytest.raises(BadName):
            await service.annexes.registry.rename("better", "a b", ME)
        with pytest.raises(BadRequest):
            await service.annexes.registry.rename("better#1", "best", ME)


async def test_an_annex_is_opened_and_closed(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        await made(service)
        assert not (await service.annexes.registry.annex("example", ME)).open
        assert (await service.annexes.sharing.open_annex("example", ME, wide=True)).open
        assert not (await service.annexes.sharing.open_annex("example", ME, wide=False)).open


async def test_an_annex_is_shared_by_its_owner_alone(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        await made(service)
        assert (await service.annexes.registry.share("example", "bob", ME)).guests == ("bob",)
        assert (await service.annexes.registry.share("example", "ann", ME)).guests == ("ann", "bob")
        assert (await service.annexes.registry.share("example", "ann", ME)).guests == ("ann", "bob")
        assert (await service.annexes.sharing.unshare("example", "bob", ME)).guests == ("ann",)
        with pytest.raises(NotFound, match="guest bob"):
            await service.annexes.sharing.unshare("example", "bob", ME)
        for nobody in ("", " ", "a\nb", "me"):
            with pytest.raises(BadRequest):
                await service.annexes.registry.share("example", nobody, ME)
        with pytest.raises(NotFound):
            await service.annexes.registry.share("example", "ann", OTHER)


async def test_a_lease_is_named_by_its_number_or_its_day(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        first = await made(service)
        await service.annexes.leases.shutdown("example", ME)
        second = await made(service)
        assert (await service.annexes.registry.last_lease("example#1", ME))[1].id == first.id
        assert (await service.annexes.registry.last_lease("example", ME))[1].id == second.id
        day = f"example@{first.created:%Y-%m-%d}"
        assert first.id in [lease.id for lease in (await service.annexes.registry.leases(day, ME))[1]]
        for name in ("example#9", "example@1999-01-01"):
            with pytest.raises(NotFound, match=name):
                await service.annexes.registry.leases(name, ME)


async def test_templates_are_ones_own(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        await service.annexes.templates.save_template("big", TWO, ME)
        await service.annexes.templates.save_template("big", Details(nodes=9), ME)
        assert (await service.annexes.templates.template("big", ME)).details == Details(nodes=9)
        assert [one.name for one in await service.annexes.templates.templates(ME)] == ["big"]
        assert await service.annexes.templates.templates(OTHER) == []
        with pytest.raises(BadName):
            await service.annexes.templates.save_template("a/b", TWO, ME)
        await service.annexes.templates.remove_template("big", ME)
        with pytest.raises(NotFound):
            await service.annexes.templates.remove_template("big", ME)
