"""Annexes and templates, each use case built alone: named, renamed, shared; leases are found by number and by day."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from sublet.annexes.model.annex import Annex, Details, Lease
from sublet.kernel.errors import BadName, BadRequest, NameTaken, NotFound
from tests.contract.alone import Ground, standing
from tests.contract.services import ME, OTHER

pytestmark = pytest.mark.anyio
TWO = Details(nodes=2, cores=4, lifetime=timedelta(hours=2))


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    with standing(tmp_path, has_owner=True) as made:
        yield made


async def make_annex(ground: Ground, name: str = "example", *leases: int) -> Annex:
    annex = Annex(f"id-of-{name}", ME.name, name, ground.now())
    made = [Lease(f"{name}-{number}", annex.id, number, TWO, ground.now()) for number in leases or (1,)]
    await ground.store.write(lambda tx: (tx.annexes.add(annex), [tx.leases.add(lease) for lease in made]))
    return annex


async def test_an_annex_is_renamed_and_keeps_its_leases(ground: Ground) -> None:
    annex = await make_annex(ground)
    await make_annex(ground, "other")
    renamed = await ground.annexes.rename("example", "better", ME)
    assert (renamed.id, renamed.name) == (annex.id, "better")
    assert [lease.id for lease in (await ground.annexes.leases("better", ME))[1]] == ["example-1"]
    with pytest.raises(NotFound):
        await ground.annexes.annex("example", ME)
    with pytest.raises(NameTaken):
        await ground.annexes.rename("better", "other", ME)
    with pytest.raises(BadName):
        await ground.annexes.rename("better", "a b", ME)
    with pytest.raises(BadRequest):
        await ground.annexes.rename("better#1", "best", ME)


async def test_an_annex_is_shared_by_its_owner_alone(ground: Ground) -> None:
    await make_annex(ground)
    for name, guests in (("bob", ("bob",)), ("ann", ("ann", "bob")), ("ann", ("ann", "bob"))):
        assert (await ground.annexes.share("example", name, ME)).guests == guests
    for nobody in ("", " ", "a\nb", "me"):
        with pytest.raises(BadRequest):
            await ground.annexes.share("example", nobody, ME)
    with pytest.raises(NotFound):
        await ground.annexes.share("example", "ann", OTHER)


async def test_a_lease_is_named_by_its_number_or_its_day(ground: Ground) -> None:
    await make_annex(ground, "example", 1, 2)
    assert (await ground.annexes.last_lease("example#1", ME))[1].id == "example-1"
    assert (await ground.annexes.last_lease("example", ME))[1].id == "example-2"
    day = f"example@{ground.now():%Y-%m-%d}"
    assert [lease.number for lease in (await ground.annexes.leases(day, ME))[1]] == [1, 2]
    for name in ("example#9", "example@1999-01-01"):
        with pytest.raises(NotFound, match=name):
            await ground.annexes.leases(name, ME)


async def test_templates_are_ones_own(ground: Ground) -> None:
    await ground.templates.save_template("big", TWO, ME)
    await ground.templates.save_template("big", Details(nodes=9), ME)
    assert (await ground.templates.template("big", ME)).details == Details(nodes=9)
    assert [template.name for template in await ground.templates.templates(ME)] == ["big"]
    assert await ground.templates.templates(OTHER) == []
    with pytest.raises(BadName):
        await ground.templates.save_template("a/b", TWO, ME)
    await ground.templates.remove_template("big", ME)
    with pytest.raises(NotFound):
        await ground.templates.remove_template("big", ME)
