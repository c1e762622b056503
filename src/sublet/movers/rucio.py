"""The mover of Rucio names: `rucio://SERVER/SCOPE:NAME`, a file, dataset or container.

`rucio:SCOPE:NAME` is looked up at the configured server; `rucio+http://` is a server without TLS.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import parse_qs, unquote, urlsplit

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.data.model.credentials import CredentialKind, credential_for
from sublet.movers.arrival import check_checksum, guess, missing, refuse, require_sound
from sublet.movers.http import SPEED
from sublet.movers.port import SIMPLE, Policy, ResolvedFile
from sublet.movers.rucio_api import RucioClient, RucioFailed, RucioFile

EXAMPLE = "rucio://rucio.example.org/scope:name"
KIND = "rucio-data-resource"
NO_SERVER = "It names no Rucio server, and this service has none of its own (rucio_server in its settings)."
S3_PORT = 443


@dataclass(frozen=True)
class RucioName:
    """A Rucio server, and a name there."""

    server: str  # https://rucio.example.org; empty: none
    scope: str
    name: str
    account: str = ""


@dataclass
class RucioMover:
    """Resolves names to files and their addresses, which other movers bring."""

    policy: Policy
    name: str = "rucio"
    schemes: Sequence[str] = ("rucio", "rucio+http")
    kinds: Sequence[str] = (SIMPLE, KIND)

    def check(self, data: Data) -> Sequence[Reason]:
        """Return what is wrong with the address or checksum."""
        reasons = check_checksum(data)
        try:
            if not read_name(data.location, self.policy.rucio_server).server:
                reasons.append(refuse(data, NO_SERVER, nearest=EXAMPLE))
        except ValueError as error:
            reasons.append(refuse(data, f"It is no name that Rucio could know: {error}.", nearest=EXAMPLE))
        return reasons

    def estimate(self, data: Data) -> timedelta:
        """Guess how long it takes."""
        return guess(data, SPEED)

    async def resolve(self, data: Data) -> Sequence[ResolvedFile]:
        """Return each file that the name stands for, and its addresses."""
        require_sound(data, self.check(data))
        named = read_name(data.location, self.policy.rucio_server)
        try:
            files = await self._client(named).find_files(named.scope, named.name)
        except RucioFailed as error:
            raise missing(data, str(error)) from error
        total = sum(file.size or 0 for file in files)
        if self.policy.largest and total > self.policy.largest:
            raise missing(data, f"it has more than {self.policy.largest} bytes, the most that is downloaded here")
        return name_files(files)

    def _client(self, named: RucioName) -> RucioClient:
        """Make a client with the person's credential; the operator's own server may be on a private network."""
        web = [known for known in self.policy.credentials if known.kind is not CredentialKind.S3]
        is_own = named.server == self.policy.rucio_server.rstrip("/")
        public_only = self.policy.public_only and not is_own
        return RucioClient(named.server, credential_for(web, named.server), named.account, public_only)


def read_name(location: str, server: str) -> RucioName:
    """Parse an address; raise ValueError if it is wrong. `server` is used for names without one."""
    address = urlsplit(location)
    _ = address.port
    path, prefix = address.path, ""
    if address.netloc:
        if address.username or address.password:
            raise ValueError("there is a login in it; keep that with sublet credential")
        parts = path.strip("/").split("/")
        first = next((number for number, part in enumerate(parts) if ":" in unquote(part)), len(parts))
        prefix, path = "".join(f"/{part}" for part in parts[:first]), "/".join(parts[first:])
        server = f"{'http' if address.scheme.lower() == 'rucio+http' else 'https'}://{address.netloc}{prefix}"
    scope, _, name = unquote(path).partition(":")
    if not scope or not name or "/" in scope:
        raise ValueError("it ends in SCOPE:NAME")
    if re.search(r"[\x00-\x1f\x7f]", scope + name) or ".." in name.split("/"):
        raise ValueError("its scope or name has letters that no name has")
    account = parse_qs(address.query).get("account", [""])[0]
    return RucioName(server.rstrip("/"), scope, name, account)


def name_files(files: Sequence[RucioFile]) -> list[ResolvedFile]:
    """Return each file under its own name, or below its scope if two files have the same name."""
    names = Counter(file.name for file in files)
    return [
        ResolvedFile(
            (file.name if names[file.name] == 1 else f"{file.scope}/{file.name}").lstrip("/"),
            [
                Data("", SIMPLE, read_place(place.address), size=file.size, checksum=file.checksum)
                for place in file.places
            ],
        )
        for file in files
    ]


def read_place(address: str) -> str:
    """Translate an address of Rucio's into Sublet's form: S3 with the server first, files without a port."""
    parts = urlsplit(address)
    scheme = parts.scheme.lower()
    if scheme in ("s3", "s3s"):
        is_plain = scheme == "s3" and (parts.port or S3_PORT) != S3_PORT
        return f"s3+{'http' if is_plain else 'https'}://{parts.netloc}/{parts.path.lstrip('/')}"
    return f"file://{parts.path}" if scheme == "file" else address
