"""How a service is to be started, as the command line was told."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """What `sublet serve` was told; what is None comes from the settings."""

    host: str | None = None
    port: int | None = None
    platform: str | None = None  # one platform of this kind, instead of those in the settings: "memory"
    config: str | None = None  # another settings file
    gateway: bool = False
    database: str | None = None
    socket: str | None = None  # another path than the one in SUBLET_HOME
    personal: bool = False  # started by itself: the socket, and a free TCP port for the pages
    verbose: bool = False
