"""The mover of IVOIDs (`ivo://AUTHORITY/PATH`), found by the configured resolver, and of IVOA DataLink tables."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import quote, urljoin

import httpx2

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.data.model.credentials import credential_for
from sublet.kernel.public_addresses import PublicOnly
from sublet.kernel.streams import read_up_to
from sublet.kernel.tls import trust_machine
from sublet.movers.arrival import check_checksum, guess, missing, refuse, require_sound, without_secrets
from sublet.movers.http import REDIRECTS, SPEED, WAITS
from sublet.movers.port import SIMPLE, Policy, ResolvedFile
from sublet.movers.sending import sign_in
from sublet.movers.votable import TableRow, TableUnreadable, read_table
from sublet.movers.web_errors import describe_web_error

KIND = "ivoa-data-resource"
LINKS = "datalink+"  # prefix of the address of a DataLink table
NO_RESOLVER = "An IVOID only names data, and this service asks no registry (ivo_resolver in its settings)."
WITH_ADDRESS = "give its address as ivoa.obscore.access_url, or as a simple-data-resource"
ACCEPTED = "application/x-votable+xml;serialization=TABLEDATA, application/json;q=0.9, */*;q=0.1"
IVOID = re.compile(r"ivo://[A-Za-z0-9][\w.~-]{2,}([/?#][\w.~*=+!$()@:%/?#&,;-]*)?", re.ASCII)  # may contain a query
HERE = ("file:", "/", "git+file:")  # addresses of this machine
PATIENCE = 60.0  # seconds for all requests about one name
MOST_BYTES = 16 << 20  # of one answer


@dataclass
class IvoMover:
    """Resolves IVOIDs to addresses, which other movers bring."""

    policy: Policy
    name: str = "ivo"
    schemes: Sequence[str] = ("ivo", f"{LINKS}https", f"{LINKS}http")
    kinds: Sequence[str] = (SIMPLE, KIND)

    def check(self, data: Data) -> Sequence[Reason]:
        """Return what is wrong with the name, or that no resolver is configured."""
        reasons = check_checksum(data)
        if _is_links(data.location):
            return reasons
        if not IVOID.fullmatch(data.location):
            reasons.append(refuse(data, "It is no IVOID.", nearest="ivo://authority.example/path?name"))
        elif not self.policy.ivo_resolver:
            reasons.append(refuse(data, NO_RESOLVER, nearest=WITH_ADDRESS))
        return reasons

    def estimate(self, data: Data) -> timedelta:
        """Guess how long it takes."""
        return guess(data, SPEED)

    async def resolve(self, data: Data) -> Sequence[ResolvedFile]:
        """Return the data's addresses, from the resolver's answer and the DataLink tables it refers to."""
        require_sound(data, self.check(data))
        lookup = _Lookup(self.policy, data)
        try:
            async with asyncio.timeout(PATIENCE):
                if _is_links(data.location):
                    rows = await lookup.follow([TableRow(data.location.removeprefix(LINKS), is_links=True)])
                else:
                    rows = await lookup.follow(await lookup.ask_resolver())
        except TimeoutError as error:
            raise missing(data, f"where it is was not told within {PATIENCE:.0f} s") from error
        if not rows:
            raise missing(data, "nothing is known of it there, or it has no address")
        elsewhere = [row for row in rows if not row.address.lower().startswith(HERE)]
        if not elsewhere:
            raise missing(data, "what was told are files of this machine, which no registry can know")
        replicas = [Data("", SIMPLE, row.address, size=row.size, checksum=row.checksum) for row in elsewhere]
        return [ResolvedFile("", replicas)]


def _is_links(location: str) -> bool:
    return location.lower().startswith(LINKS)


@dataclass
class _Lookup:
    """The lookup of one name."""

    policy: Policy
    data: Data
    asked: set[str] = field(default_factory=set)

    async def ask_resolver(self) -> list[TableRow]:
        """Ask the operator's resolver, which may be on a private network."""
        ivoid = quote(self.data.location, safe="")
        return await self._ask(self.policy.ivo_resolver.replace("{ivoid}", ivoid), public_only=False)

    async def follow(self, rows: Sequence[TableRow]) -> list[TableRow]:
        """Return the rows, with each DataLink table replaced by its own rows."""
        found: list[TableRow] = []
        for row in rows:
            if not row.is_links:
                found.append(row)
            elif row.address not in self.asked and len(self.asked) < REDIRECTS:
                self.asked.add(row.address)
                found += await self.follow(await self._ask(row.address, public_only=self.policy.public_only))
        return found

    async def _ask(self, address: str, *, public_only: bool) -> list[TableRow]:
        trusted = trust_machine()
        transport = PublicOnly(verify=trusted) if public_only else None
        auth = sign_in(credential_for(self.policy.credentials, address))
        try:
            async with (
                httpx2.AsyncClient(verify=trusted, transport=transport, auth=auth, timeout=WAITS) as client,
                client.stream("GET", address, headers={"Accept": ACCEPTED}) as response,
            ):
                return await self._read(response)
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise missing(self.data, f"{without_secrets(address)}: {error}") from error
        except httpx2.TransportError as error:
            raise missing(
                self.data, f"{without_secrets(address)} can't be asked: {describe_web_error(error)}"
            ) from error
        except TableUnreadable as error:
            raise missing(self.data, f"the answer of {without_secrets(address)} can't be read: {error}") from error

    async def _read(self, response: httpx2.Response) -> list[TableRow]:
        """Read an answer: a redirect leads to the data, anything else is a table of addresses."""
        if response.is_redirect:
            return [TableRow(urljoin(str(response.url), response.headers.get("location", "")))]
        content = await read_up_to(MOST_BYTES, response.aiter_bytes())
        if len(content) > MOST_BYTES:
            raise TableUnreadable(f"it has more than {MOST_BYTES} bytes")
        if not response.is_success:
            answer = f"{response.status_code} {response.reason_phrase}".strip()
            raise missing(self.data, f"{without_secrets(str(response.url))} answered {answer}")
        return read_table(content, response.headers.get("content-type", ""))
