"""The mover of small files in the request itself: `data:` addresses (RFC 2397), and the `content` of data."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.kernel.data_urls import DataUrl, read_data_url
from sublet.kernel.part_names import name_part
from sublet.movers.arrival import check_arrived, check_checksum, refuse, require_sound, safe_name
from sublet.movers.port import SIMPLE, Policy, Progress

EXAMPLE = "data:text/plain;name=a.txt,hello"


@dataclass
class InlineMover:
    """Writes the content of an address to a file."""

    policy: Policy
    name: str = "inline"
    schemes: Sequence[str] = ("data",)
    kinds: Sequence[str] = (SIMPLE,)

    def check(self, data: Data) -> Sequence[Reason]:
        """Return what is wrong with the address or checksum."""
        reasons = check_checksum(data)
        try:
            read_data_url(data.location)
        except ValueError as error:
            reasons.append(refuse(data, f"It is not an address that holds a file: {error}.", nearest=EXAMPLE))
        return reasons

    async def measure(self, data: Data) -> int | None:
        """Return the size of the content."""
        return None if self.check(data) else len(read_data_url(data.location).content)

    def estimate(self, data: Data) -> timedelta:
        """Return the request's own estimate, or zero: the content is here already."""
        return data.prepare or timedelta(0)

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Write the file, and check it."""
        require_sound(data, self.check(data))
        held = read_data_url(data.location)
        await asyncio.to_thread(_write, data, target / safe_name(held.name), held)
        progress(len(held.content), len(held.content))


def _write(data: Data, file: Path, held: DataUrl) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(name_part(file.name))
    part.write_bytes(held.content)
    if held.is_executable:
        part.chmod(part.stat().st_mode | 0o100)
    try:
        check_arrived(data, part)
    except Exception:
        part.unlink()
        raise
    part.rename(file)
