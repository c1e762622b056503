"""The settings by which a system gets data: what it may fetch by itself, how fast, and how much of it is kept there."""

from __future__ import annotations

from pydantic import Field

from sublet.platforms.batch.remote import RemotePlatform
from sublet.platforms.port import Memory

GIB = 1 << 30


class TransferSettings(RemotePlatform):
    """How data gets to a system, and stays there."""

    downloads: bool = Field(
        default=True, description="Whether its login host may fetch data by itself; else it is streamed over the login."
    )
    transfer_host: str = Field(
        default="",
        pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.@-]*)?$",
        description="A host that sees the same files and fetches data in its place, by ssh from the login host.",
    )
    transfer_rate: Memory = Field(
        default=0, ge=0, description="The most that it may fetch in a second, as `100MiB`; 0: as much as it gets."
    )
    cache: Memory = Field(
        default=100 * GIB,
        ge=0,
        description="How much data and how many images are kept there for later sessions, as `500GiB`: those go first "
        "that have not been needed for the longest time; 0: no limit but `unused`.",
    )
