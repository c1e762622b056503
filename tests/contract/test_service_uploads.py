"""Uploads on a gateway: what is done with them is in the audit log, and they go with the person."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from sublet.data.model.uploads import UploadWish
from sublet.kernel.errors import NotAllowed
from sublet.people.model.person import Person
from tests.contract.services import serving

pytestmark = pytest.mark.anyio
OP, ANN = Person("op@example.org", operator=True), Person("ann@example.org")


async def pieces(*data: bytes) -> AsyncIterator[bytes]:
    for piece in data:
        yield piece


async def test_a_gateway_notes_uploads_and_removes_them_with_the_person(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", loop=False) as service:
        await service.people.directory.add_person(OP, ANN.name)
        cases = service.uploads
        begun = await cases.transfers.begin(ANN, UploadWish("rain", "a.txt", 5), "192.0.2.7")
        await cases.transfers.append(ANN, begun.id, 0, pieces(b"he", b"llo"))
        assert cases.kept.area.path(begun.id).read_bytes() == b"hello"
        [added] = await service.store.read(lambda tx: tx.audit.list(noun="upload"))
        assert (added.person, added.action, added.name, added.host) == (ANN.name, "upload.add", "rain", "192.0.2.7")
        await service.people.directory.remove_person(OP, ANN.name)
        assert await cases.kept.list(ANN) == []
        await cases.care.sweep()
        assert list(cases.kept.area.ids()) == []


async def test_uploads_expire_also_after_a_clock_that_was_far_ahead_is_set_back(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", loop=False) as service:
        cases, now = service.uploads, service.now()
        await cases.care.look_after(now + timedelta(days=900))
        begun = await cases.transfers.begin(ANN, UploadWish("rain", "a.txt", 5))
        await cases.transfers.append(ANN, begun.id, 0, pieces(b"hello"))
        [upload] = await cases.kept.list(ANN)
        await service.store.write(lambda tx: tx.uploads.keep(upload.id, now - timedelta(seconds=1)))
        await cases.care.look_after(now)
        assert await cases.kept.list(ANN) == []


async def test_guests_of_a_personal_service_upload_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, loop=False) as service:
        with pytest.raises(NotAllowed, match="Guests"):
            await service.uploads.transfers.begin(Person("bob", guest=True), UploadWish("rain", "a.txt", 5))
