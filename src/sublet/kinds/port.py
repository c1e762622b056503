"""The port of kinds: how an executable can be run, given a platform's tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from sublet.booking.model.job import Mount, Program
from sublet.booking.model.offer import Reason
from sublet.booking.model.places import BoundPlace
from sublet.booking.model.request import Data, Executable, Request
from sublet.booking.model.shape import Amounts
from sublet.kernel.container_network import USUAL


@dataclass(frozen=True)
class Callback:
    """Where a running program calls the service: HTTPS addresses, and the public key it must find there."""

    urls: tuple[str, ...]
    pin: str  # base64 of the SHA-256 of the public key


@dataclass(frozen=True)
class Setting:
    """Where and with what a program will run; filled in by the platform at submission."""

    work: str  # the working directory, absolute, on the platform
    directory: str  # the session's directory, absolute; sources of mounts are below it
    amounts: Amounts
    mounts: tuple[Mount, ...]
    tools: Mapping[str, str]
    secret: str = ""  # the session's own, for interactive sessions and those that call the service
    base_url: str = "/"  # the path under which a proxied server is reached: "/connect/UUID/"
    callback: Callback | None = None  # for programs that call the service
    session: str = ""  # its id
    person: str = ""  # its owner
    platform: str = ""  # the platform's name
    network: str = USUAL  # the network policy of its containers: one of container_network.POLICIES
    places: tuple[BoundPlace, ...] = ()  # directories of the platform that it shares with other sessions
    has_files: bool = False  # whether something was laid out in the working directory

    def find_brought(self, name: str) -> str:
        """Return the directory of an item that `Kind.brings` lists."""
        return f"{self.directory}/data/{name}"

    def tool(self, name: str) -> str:
        """Return how to call a tool: by its path if the survey knows it, or else by its name."""
        path = self.tools.get(name, "")
        return path if path.startswith("/") else name


@dataclass(frozen=True)
class Way:
    """One way to run an executable."""

    name: str  # "sh", "podman", "papermill"
    contained: bool  # whether it is isolated from the account's files; a gateway runs nothing else
    program: Callable[[Setting], Program]
    prepare: timedelta = timedelta(0)  # how long it takes before it can start, such as to fetch an image
    interactive: bool = False  # becomes AVAILABLE with a connector, instead of RUNNING
    asks: bool = False  # the program calls the service at run time, with a secret of its own


@dataclass(frozen=True)
class WayNeed:
    """A way that a kind knows, and what a platform must have for it."""

    name: str
    tools: tuple[str, ...]
    lacks: str = ""  # what the request itself lacks for it, in words


class Kind(Protocol):
    """A kind of executable."""

    name: str  # the short name
    uri: str  # the full one, as in documents
    outside: bool = False  # runs outside containers only
    in_container: bool = False  # runs in a container, where bound directories appear at paths of their own
    extra: str = ""  # the extra that installs all it needs: pip install 'sublet[EXTRA]'
    leaves_nothing: bool = False  # only its output is kept: its files are removed when it ends

    def check(self, executable: Executable, request: Request) -> Sequence[Reason]:
        """Return what is wrong with the fields, on any platform; empty if nothing is."""
        ...

    def ways(self, executable: Executable, tools: Mapping[str, str]) -> Sequence[Way]:
        """Return the ways to run the executable with these tools, best first; empty if there are none."""
        ...

    def needs(self, executable: Executable) -> str:
        """Describe what a platform needs to run it: "podman, docker or apptainer"."""
        ...

    def list_needs(self, executable: Executable) -> Sequence[WayNeed]:
        """List all ways to run it, on any platform."""
        return ()

    def brings(self, executable: Executable) -> Sequence[Data]:
        """List what the executable consists of; it is staged to `data/NAME/` of the session's directory."""
        return ()

    def archives(self, executable: Executable) -> Sequence[str]:
        """List image archives that it names by path; those on this machine are loaded before the session starts."""
        return ()

    def fetches(self, executable: Executable) -> Sequence[Data]:
        """List what its ways fetch themselves, any one of which is enough; it is staged where they can't fetch it."""
        return ()

    def fetches_for(self, executable: Executable, way: str) -> Sequence[Data]:
        """List what one way fetches; what the way doesn't use needn't be there."""
        return self.fetches(executable)

    def parts(self, executable: Executable, cores: int) -> int:
        """Return into how many parts, each with so many cores, it is best divided on a shared queue."""
        return 1
