"""What the service asks of a kind: in which ways can this executable be run where these tools exist?"""

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
    """Where a program asks the service, once it runs: HTTPS addresses, and the key that it must find there."""

    urls: tuple[str, ...]
    pin: str  # base64 of the SHA-256 of the public key


@dataclass(frozen=True)
class Setting:
    """Where and with what a program is going to run; the platform fills it in at submit."""

    work: str  # the working directory, absolute, on the platform
    directory: str  # the session's directory, absolute: mounts' sources are below it
    amounts: Amounts
    mounts: tuple[Mount, ...]
    tools: Mapping[str, str]
    secret: str = ""  # for an interactive session, and for one that asks the service: its own
    base_url: str = "/"  # under which path a proxied server is reached: "/connect/UUID/"
    callback: Callback | None = None  # for one that asks the service
    session: str = ""  # its id
    person: str = ""  # whose it is
    platform: str = ""  # the platform's name
    network: str = USUAL  # the policy of what network its containers may have: one of container_network.POLICIES
    places: tuple[BoundPlace, ...] = ()  # directories of the platform that it shares with other sessions
    has_files: bool = False  # something was laid out in the working directory

    def find_brought(self, name: str) -> str:
        """The directory that one of the things named by `Kind.brings` is in."""
        return f"{self.directory}/data/{name}"

    def tool(self, name: str) -> str:
        """How a tool is called: by its path where the survey knows it, else by its name."""
        path = self.tools.get(name, "")
        return path if path.startswith("/") else name


@dataclass(frozen=True)
class Way:
    """One way to run an executable."""

    name: str  # "sh", "podman", "papermill"
    contained: bool  # whether it is kept from the account's files; a gateway runs nothing else
    program: Callable[[Setting], Program]
    prepare: timedelta = timedelta(0)  # how long it takes before it can start (an image to fetch)
    interactive: bool = False  # AVAILABLE with a connector, instead of RUNNING
    asks: bool = False  # the program asks the service when it runs, with a secret of its own


@dataclass(frozen=True)
class WayNeed:
    """A way that a kind knows, wherever it is possible, and what a platform must have for it."""

    name: str
    tools: tuple[str, ...]
    lacks: str = ""  # what the request itself lacks for it, in words


class Kind(Protocol):
    """A kind of executable."""

    name: str  # the short name
    uri: str  # the full one, as it is written on the wire
    outside: bool = False  # it runs outside a container alone
    in_container: bool = False  # it runs in a container, which sees what is bound there by its own path
    extra: str = ""  # what of Sublet's own brings all that it needs: pip install 'sublet[EXTRA]'
    leaves_nothing: bool = False  # what it prints is all that is kept of it: its files go when it ends

    def check(self, executable: Executable, request: Request) -> Sequence[Reason]:
        """What is wrong with the fields, whatever the platform: an empty answer means nothing."""
        ...

    def ways(self, executable: Executable, tools: Mapping[str, str]) -> Sequence[Way]:
        """The ways to run it with these tools, best first; none if there is no way."""
        ...

    def needs(self, executable: Executable) -> str:
        """In words, what a platform needs to have to run it: "podman, docker or apptainer"."""
        ...

    def list_needs(self, executable: Executable) -> Sequence[WayNeed]:
        """All ways that there are to run it, on whichever platform."""
        return ()

    def brings(self, executable: Executable) -> Sequence[Data]:
        """What it is itself made of: brought before the start into `data/NAME/` of the session's directory."""
        return ()

    def archives(self, executable: Executable) -> Sequence[str]:
        """Archives of images that it is run from by their paths: where that is this machine, they are loaded before."""
        return ()

    def fetches(self, executable: Executable) -> Sequence[Data]:
        """What its ways fetch by themselves, one of these being enough: brought like the above where they can't."""
        return ()

    def fetches_for(self, executable: Executable, way: str) -> Sequence[Data]:
        """The same for one way: what that doesn't use need not be there."""
        return self.fetches(executable)

    def parts(self, executable: Executable, cores: int) -> int:
        """Into how many parts, each with so many cores, a shared queue may best get it."""
        return 1
