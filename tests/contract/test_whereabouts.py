"""What data is called in caches is known before it is brought, and a moment is all that an asker waits for it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data, Request
from sublet.data.executables import Movers
from sublet.data.model.links import name_entry
from sublet.data.whereabouts import NOWHERE, UNANSWERED, EntryFinder, Whereabouts
from sublet.kernel.errors import DataNotThere
from sublet.movers.arrival import missing
from sublet.movers.file import FileMover
from sublet.movers.http import HttpMover
from sublet.movers.port import SIMPLE, UNLIMITED, AnyMover, ResolvedFile
from sublet.platforms.batch.kept import digest_of, name_image, name_of
from tests.web_source import WebSource, serve_source

pytestmark = pytest.mark.anyio
WEB, FILES = HttpMover(UNLIMITED), FileMover(UNLIMITED)
MOVERS = Movers([WEB, FILES])


@pytest.fixture(scope="module")
def source() -> Iterator[WebSource]:
    with serve_source("127.0.0.1") as server:
        yield server


@dataclass
class NamesOnly:
    """A catalogue that knows where something is."""

    files: Sequence[ResolvedFile]
    name: str = "names"
    schemes: Sequence[str] = ("names",)

    def check(self, data: Data) -> Sequence[Reason]:
        return ()

    def estimate(self, data: Data) -> timedelta:
        return timedelta(0)

    async def resolve(self, data: Data) -> Sequence[ResolvedFile]:
        return self.files


@dataclass
class Shop:
    """A registry that is asked what a tag means."""

    asked: list[str] = field(default_factory=list)
    is_away: bool = False

    async def pin(self, data: Data) -> Data:
        self.asked.append(data.location)
        if self.is_away:
            raise missing(data, "nobody answers")
        return Data(data.name, SIMPLE, f"{data.location.rpartition(':')[0]}@sha256:{'1' * 64}")

    async def measure(self, data: Data) -> int | None:
        return 62_000_000


async def find(mover: AnyMover, data: Data) -> object:
    return await EntryFinder().find(MOVERS, mover, Request(None, data=(data,)), data, "me")


async def test_a_file_on_the_web_has_the_name_that_it_will_have(source: WebSource) -> None:
    data = Data("cube", SIMPLE, source.put("/cube.fits", os.urandom(5000)))
    where = await EntryFinder().find(MOVERS, WEB, Request(None, data=(data,)), data, "me")
    assert (where.entry, where.size) == (name_entry(await WEB.links(data), "me", "s1"), 5000)
    assert not source.gets("/cube.fits"), "it was only described"


async def test_what_has_only_a_name_is_known_by_where_it_leads(source: WebSource) -> None:
    address = source.put("/named.fits", os.urandom(5000))
    catalogue = NamesOnly([ResolvedFile("", [Data("", SIMPLE, address)])])
    where = await find(catalogue, Data("survey", SIMPLE, "names:survey"))
    assert where == await find(WEB, Data("survey", SIMPLE, address))
    away = NamesOnly([ResolvedFile("", [Data("", SIMPLE, "root://nobody//x")])])
    assert await find(away, Data("survey", SIMPLE, "names:survey")) == NOWHERE


async def test_what_can_not_be_known_or_is_not_there_is_nowhere(source: WebSource, tmp_path: Path) -> None:
    for address in (f"http://{source.address}/gone", "http://127.0.0.1:9/dead"):
        assert await find(WEB, Data("gone", SIMPLE, address)) == UNANSWERED
    await asyncio.to_thread((tmp_path / "small").write_bytes, b"x")
    small = await EntryFinder().find(MOVERS, FILES, Request(None), Data("s", SIMPLE, f"file://{tmp_path}/small"), "me")
    assert small == Whereabouts(size=1, has_asked=True), "so little goes along with the session"


async def test_an_image_file_is_read_once_and_again_when_it_changed(tmp_path: Path) -> None:
    file, finder = tmp_path / "tool.sif", EntryFinder()
    data = Data("image", SIMPLE, f"file://{file}", shared=True)
    for content in (b"one", b"other"):
        await asyncio.to_thread(file.write_bytes, content)
        for _ in range(2):
            where = await finder.find(MOVERS, FILES, Request(None), data, "me")
            assert (where.entry, where.size) == (name_of(digest_of(file)), len(content))
    assert len(finder._files) == 2


async def test_a_registry_is_asked_once_in_a_while_also_if_it_does_not_answer() -> None:
    image = Data("image", SIMPLE, "docker://example.org/tools/fit:1", shared=True)
    for shop, entry in ((Shop(), name_image(f"x@sha256:{'1' * 64}")), (Shop(is_away=True), "")):
        finder = EntryFinder()
        for _ in range(2):
            assert (await finder.find_image(shop, image)).entry == entry
        assert len(shop.asked) == 1
    with pytest.raises(DataNotThere):
        await Shop(is_away=True).pin(image)
