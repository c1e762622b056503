"""How a system's own curl is told to bring one file, where it has no Python that could."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

from sublet.booking.model.request import Data
from sublet.data.model.links import FileLink, LinkedFiles
from sublet.data.model.tools import ToolPlan
from sublet.kernel.public_addresses import NotPublic, public_addresses
from sublet.movers.arrival import missing
from sublet.movers.port import Policy
from sublet.platforms.caching import NoWay

# What curl and this machine read in the same way; whatever else an address may be is left to other roads.
HOST = re.compile(r"([A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?")
REST = re.compile(r"(/[!-~]*)?")
DOTS = re.compile(r"/(\.|%2e){1,2}(/|$)", re.IGNORECASE)  # curl would leave such parts of a path out
HEADER = re.compile(r"[A-Za-z0-9-]+: [ -~]+")
OWN = {"Accept-Encoding": "identity", "User-Agent": "sublet"}


async def plan_curl(data: Data, files: LinkedFiles, policy: Policy) -> ToolPlan:
    """What curl is told; NoWay if it can't be, DataNotThere if it leads where it may not."""
    [link] = files.links
    parts = urlsplit(link.url)
    pinned = await _pin(data, parts) if policy.public_only else []
    facts = [("version", link.version), ("public", "yes" if policy.public_only else "")]
    facts += [("option", line) for line in [*describe_link_to_curl(link), *pinned]]
    return ToolPlan("curl", link.host, facts, files, files)


def describe_link_to_curl(link: FileLink) -> Sequence[str]:
    """The address and the headers of a link, as lines of curl's settings; NoWay if curl might read them otherwise."""
    parts = urlsplit(link.url)
    rest = parts.path + (f"?{parts.query}" if parts.query else "")
    headers = [f"{name}: {value}" for name, value in {**OWN, **link.headers}.items()]
    is_plain = HOST.fullmatch(parts.netloc) and REST.fullmatch(rest) and not DOTS.search(parts.path)
    if not is_plain or not all(map(HEADER.fullmatch, headers)):
        raise NoWay("its address can't be told to curl")
    return [
        f"url = {_quote(f'{parts.scheme}://{parts.netloc}{rest}')}",
        *(f"header = {_quote(text)}" for text in headers),
    ]


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


async def _pin(data: Data, parts: SplitResult) -> Sequence[str]:
    """The one address that curl connects to: it is looked up here, where it is seen whether it is public."""
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        addresses = await public_addresses(host, port)
    except NotPublic as error:
        raise missing(data, str(error)) from error
    except OSError as error:
        raise NoWay(f"the name {host} can't be resolved here: {error.strerror}") from error
    first = min(addresses, key=lambda text: ipaddress.ip_address(text).version)  # old ones read no others
    shown = f"[{first}]" if ":" in first else first
    return [] if ":" in host else [f"resolve = {_quote(f'{host}:{port}:{shown}')}"]
