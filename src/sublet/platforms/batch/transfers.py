"""The settings for data on a system: what it may fetch by itself, how fast, and how much is kept there."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import quote

from pydantic import Field

from sublet.kernel.errors import PlatformRefused
from sublet.kernel.path_texts import restore_path
from sublet.platforms.batch.remote import RemotePlatform
from sublet.platforms.caching import NoWay
from sublet.platforms.port import Memory
from sublet.reach.port import Command, Outcome

GIB = 1 << 30
MEASURING = 600  # seconds to add up the files of a directory


def read_size(outcome: Outcome) -> int:
    """Read the output of `du -sk`, in bytes; unreadable files aren't counted."""
    count = outcome.text.split("\t")[0].strip()
    if not count.isdecimal():
        raise PlatformRefused(f"The size of a directory can't be measured there: {outcome.complaint}")
    return int(count) << 10


def find_address(collection: str, root: str, path: str) -> str:
    """Return the address of a path in the system's Globus collection, which exposes `root`.

    Raise NoWay if there is none.
    """
    if not collection:
        raise NoWay("it has no collection of Globus in its settings (`globus`)")
    whole = PurePosixPath(path)
    if not whole.is_relative_to(root):
        raise NoWay(f"{path} is not below {root}, which its collection of Globus shows")
    return f"globus://{collection.lower()}{quote(f'/{whole.relative_to(root)}', errors='surrogateescape')}"


class TransferSettings(RemotePlatform):
    """How data gets to a system, and stays there."""

    downloads: bool = Field(
        default=True, description="Whether its login host may fetch data; otherwise data is streamed over the login."
    )
    transfer_host: str = Field(
        default="",
        pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.@-]*)?$",
        description="A host that sees the same files and fetches data in its place, by ssh from the login host.",
    )
    transfer_rate: Memory = Field(
        default=0,
        ge=0,
        description="The most data in a second that it fetches, sends or is streamed, for each session, as `100MiB`; "
        "0: as much as it gets.",
    )
    globus: str = Field(
        default="",
        pattern=r"^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})?$",
        description="The system's own collection of Globus, by its UUID: `globus:` data is moved straight to it. In "
        "it one has to be the user that signs in here.",
    )
    globus_root: str = Field(
        default="/",
        pattern=r"^/[^\n]*$",
        description="The directory of the system that is `/` in that collection.",
    )
    cache: Memory = Field(
        default=100 * GIB,
        ge=0,
        description="How much data and how many images are kept there for later sessions, as `500GiB`: those go first "
        "that have not been needed for the longest time; 0: no limit but `unused`.",
    )

    async def find_in_collection(self, key: str, path: str) -> str:
        """Return the address by which Globus reads a result file."""
        return find_address(
            self.globus, self.globus_root, f"{await self.session_directory(key)}/work/{restore_path(path)}"
        )

    async def measure_place(self, path: str) -> int:
        """Return the total size in bytes of the files below a directory."""
        return await self.reach.run(Command(("du", "-sk", "--", path), read_size, seconds=MEASURING))
