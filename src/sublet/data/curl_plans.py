"""Plans how a system without a usable Python fetches a file or folder with its own curl."""

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

# Only addresses that curl and this machine parse alike; data at all others takes other roads.
HOST = re.compile(r"([A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?")
REST = re.compile(r"(/[!-~]*)?")
DOTS = re.compile(r"/(\.|%2e){1,2}(/|$)", re.IGNORECASE)  # curl would drop such parts of a path
HEADER = re.compile(r"[A-Za-z0-9-]+: [ -~]+")
PATH = re.compile(r"[^/\x00-\x1f\x7f][^\x00-\x1f\x7f]*")  # a file's path in a folder
PIECES = "part.file.pieces"  # holds the files until all have come
MOST_FILES = 20_000  # in a folder: curl keeps what it knows of each file in memory
OWN = {"Accept-Encoding": "identity", "User-Agent": "sublet"}


async def plan_curl(data: Data, files: LinkedFiles, policy: Policy) -> ToolPlan:
    """Plan the transfer by curl; raise NoWay if curl can't do it, DataNotThere if the address isn't allowed."""
    if files.is_folder:
        return await _plan_folder(data, files, policy)
    [link] = files.links
    parts = urlsplit(link.url)
    pinned = await _pin(data, parts) if policy.public_only else []
    facts = [("version", link.version), ("public", "yes" if policy.public_only else "")]
    facts += [("option", line) for line in [*describe_link_to_curl(link), *pinned]]
    return ToolPlan("curl", link.host, facts, files, files)


async def _plan_folder(data: Data, files: LinkedFiles, policy: Policy) -> ToolPlan:
    """Plan the transfer of all files of a folder by one run of curl."""
    if len({link.host for link in files.links}) != 1 or len(files.links) > MOST_FILES:
        raise NoWay("its files are too many for curl, or at several hosts")
    pinned = await _pin(data, urlsplit(files.links[0].url)) if policy.public_only else []
    facts = [("public", "yes" if policy.public_only else ""), ("rest", "")]
    for link in files.links:
        if link.size is None or not PATH.fullmatch(link.path) or DOTS.search(f"/{link.path}"):
            raise NoWay("one of its files can't be told to curl")
        output = f"output = {_quote(f'{PIECES}/{link.path}')}"
        facts += [("size", str(link.size)), ("version", link.version), ("path", link.path)]
        facts += [("option", line) for line in [*describe_link_to_curl(link), output, *pinned]]
    return ToolPlan("curl", files.links[0].host, facts, files, files, "curl_folder")


def describe_link_to_curl(link: FileLink) -> Sequence[str]:
    """Return a link's address and headers as lines of a curl config.

    Raise NoWay if curl might parse them differently.
    """
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
    """Resolve the host here, check that it is public, and return the curl option that pins it to that address."""
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        addresses = await public_addresses(host, port)
    except NotPublic as error:
        raise missing(data, str(error)) from error
    except OSError as error:
        raise NoWay(f"the name {host} can't be resolved here: {error.strerror}") from error
    first = min(addresses, key=lambda text: ipaddress.ip_address(text).version)  # old versions know IPv4 only
    shown = f"[{first}]" if ":" in first else first
    return [] if ":" in host else [f"resolve = {_quote(f'{host}:{port}:{shown}')}"]
