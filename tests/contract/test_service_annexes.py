"""Annexes are opened and shared, and what that ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from sublet.kernel.errors import NotFound
from tests.contract.leases import leasing, made
from tests.contract.services import ME

pytestmark = pytest.mark.anyio


async def test_an_annex_is_opened_and_closed(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        await made(service)
        assert not (await service.annexes.registry.annex("example", ME)).open
        assert (await service.annexes.sharing.open_annex("example", ME, wide=True)).open
        assert not (await service.annexes.sharing.open_annex("example", ME, wide=False)).open


async def test_who_is_no_guest_any_more_is_told_so(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        await made(service)
        assert (await service.annexes.registry.share("example", "bob", ME)).guests == ("bob",)
        assert (await service.annexes.registry.share("example", "ann", ME)).guests == ("ann", "bob")
        assert (await service.annexes.sharing.unshare("example", "bob", ME)).guests == ("ann",)
        with pytest.raises(NotFound, match="guest bob"):
            await service.annexes.sharing.unshare("example", "bob", ME)
