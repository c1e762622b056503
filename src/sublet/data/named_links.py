"""Links to data known only by a name: each file comes from the first of its addresses that answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from sublet.booking.model.request import Data
from sublet.data.executables import Movers
from sublet.data.model.links import FileLink, LinkedFiles
from sublet.data.racing import SilentHosts
from sublet.data.resolving import AT_ONCE, BringableFile, find_files
from sublet.kernel.errors import DataNotThere
from sublet.movers.port import Links, NoLinks, Policy, Resolves
from sublet.movers.trees import safe_path

FETCHED = ("http", "https", "s3", "s3+http", "s3+https", "dav", "davs")  # addresses that a system may fetch itself
MOST_ASIDE = 2  # hosts that may be set aside: each costs the time to find out that it doesn't answer


@dataclass
class NamedLinks:
    """Links to the files that a name stands for, each read by the mover of its address."""

    movers: Movers
    resolver: Resolves
    policy: Policy = field(init=False)
    _readers: dict[str, tuple[Links, Data]] = field(default_factory=dict)  # by address
    _hosts: SilentHosts = field(default_factory=SilentHosts)
    _aside: set[str] = field(default_factory=set)  # hosts that the system can't reach
    _files: Sequence[BringableFile] = ()

    def __post_init__(self) -> None:
        """Take the movers' policy: all movers of a person have the same one."""
        self.policy = next((mover.policy for mover in self.movers.usual if isinstance(mover, Links)), Policy())

    async def links(self, data: Data) -> LinkedFiles:
        """Return links to all files; raise NoLinks if one has no address that can be linked."""
        files = await find_files(self.movers, self.resolver, data)
        self._files = files
        if any(not any(isinstance(mover, Links) for mover, _ in file.sources) for file in files):
            raise NoLinks
        if len(files) == 1 and not files[0].path:
            return await self._link(data, files[0])
        turns = asyncio.Semaphore(AT_ONCE)

        async def link(file: BringableFile) -> FileLink:
            async with turns:
                return await self._link_file(data, file)

        try:
            async with asyncio.TaskGroup() as group:
                linking = [group.create_task(link(file)) for file in files]
        except ExceptionGroup as several:
            raise several.exceptions[0] from several
        links = [task.result() for task in linking]
        return LinkedFiles(links, is_folder=len(links) > 1 or "/" in links[0].path)

    def set_aside(self, host: str) -> bool:
        """Avoid a host from now on; return whether all files at this host are also available elsewhere."""
        if host in self._aside or len(self._aside) >= MOST_ASIDE:
            return False
        self._aside.add(host)
        hosts = [{_host(replica) for _, replica in file.sources if _is_fetched(replica)} for file in self._files]
        return all(each - self._aside for each in hosts if host in each)

    async def _link_file(self, data: Data, file: BringableFile) -> FileLink:
        linked = await self._link(data, file)
        if linked.is_folder:
            raise NoLinks
        return replace(linked.links[0], path=str(safe_path(data, file.path)))

    async def _link(self, data: Data, file: BringableFile) -> LinkedFiles:
        """Link a file by the first address that answers this machine, or by one that the system may still reach."""
        silent: LinkedFiles | None = None
        ordered = await self._hosts.order(file.sources)
        prompt = sorted(
            ordered.prompt, key=lambda source: (not _is_fetched(source[1]), _host(source[1]) in self._aside)
        )
        for mover, replica in _list_links([*prompt, *ordered.silent]):
            try:
                linked = await mover.links(replica)
            except (DataNotThere, NoLinks):
                continue
            for link in linked.links:
                self._readers[link.url] = (mover, replica)
            if all(link.version for link in linked.links):
                return linked
            silent = silent or linked
        if silent is None:
            raise NoLinks
        return silent

    def read(self, data: Data, link: FileLink, offset: int) -> AsyncIterator[bytes]:
        """Read a linked file from a byte offset on."""
        mover, replica = self._readers[link.url]
        return mover.read(replica, link, offset)


def _list_links(sources: Sequence[tuple[object, Data]]) -> list[tuple[Links, Data]]:
    return [(mover, replica) for mover, replica in sources if isinstance(mover, Links)]


def _is_fetched(replica: Data) -> bool:
    return replica.location.partition(":")[0].lower() in FETCHED


def _host(replica: Data) -> str:
    return urlsplit(replica.location).netloc.rpartition("@")[2]
