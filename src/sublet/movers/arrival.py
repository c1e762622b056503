"""What all movers share: safe file names, errors without secrets, and the check of what came."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.kernel.checksums import compute_checksum
from sublet.kernel.data_urls import is_data_url, shorten_location
from sublet.kernel.errors import DataNotSent, DataNotThere

DIGESTS = {"sha256": 64, "sha512": 128, "md5": 32, "adler32": 8}  # name → number of hexadecimal digits
READ = 1 << 20
LONGEST_NAME = 200
LONGEST_NUMBER = 18  # digits


def safe_name(name: str, otherwise: str = "data") -> str:
    """Return a plain file name: no path, no control characters, not hidden."""
    plain = re.sub(r"[\x00-\x1f\x7f/\\]", "_", name).strip().lstrip(".")
    return plain.encode()[:LONGEST_NAME].decode(errors="ignore") or otherwise


def read_number(text: str) -> int | None:
    """Read a number of bytes that a server reports; None if it is none, or can't be one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else None


def refuse(data: Data, message: str, *, wanted: str = "", nearest: str = "") -> Reason:
    """Return the reason why a location can't be used."""
    field = f"data[{data.name}].location"
    return Reason(
        "urn:invalid-value", field, message, wanted=wanted or shorten_location(data.location), nearest=nearest
    )


def check_checksum(data: Data) -> list[Reason]:
    """Return what is wrong with the form of the checksum."""
    if not data.checksum:
        return []
    kind, _, digits = data.checksum.partition(":")
    if len(digits) == DIGESTS.get(kind.lower()) and re.fullmatch(r"[0-9a-fA-F]+", digits):
        return []
    forms = ", ".join(f"{name}: and {length} hexadecimal digits" for name, length in DIGESTS.items())
    field = f"data[{data.name}].checksum"
    message = f"{data.checksum[:80]!r} is not a checksum that can be checked."
    return [Reason("urn:invalid-value", field, message, wanted=data.checksum[:200], nearest=forms)]


def guess(data: Data, bytes_per_second: int) -> timedelta:
    """Guess how long the transfer takes: the request's own estimate, or by its size, or half a minute."""
    if data.prepare is not None:
        return data.prepare
    seconds = 30 if data.size is None else data.size // bytes_per_second
    return timedelta(seconds=seconds)


def without_secrets(location: str) -> str:
    """Return an address as it may be shown: without password, and without query, which may be a signature."""
    return re.sub(r"//[^/@]*@", "//…@", location).partition("?")[0]


def _show(location: str) -> str:
    """Return an address for an error message: without secrets, and with inline content shortened."""
    if is_data_url(location):
        return shorten_location(location)
    return without_secrets(location) + ("?…" if "?" in location else "")


def check_place(data: Data, why: str, nearest: str) -> list[Reason]:
    """Return what is wrong with the checksum, and with the address if `why` says so."""
    reasons = check_checksum(data)
    if why:
        reasons.append(refuse(data, f"Data can't come from there: {why}.", nearest=nearest))
    return reasons


def missing(data: Data, why: str) -> DataNotThere:
    """Return the error that says which data isn't there and why, without secrets of its address."""
    return DataNotThere(name=data.name, location=_show(data.location), why=why)


def require_sound(data: Data, reasons: Sequence[Reason]) -> None:
    """Raise DataNotThere with the first of the reasons, if there are any."""
    for reason in reasons:
        raise missing(data, reason.message)


def unsent(name: str, location: str, why: str) -> DataNotSent:
    """Return the error that says which file wasn't sent and why, without secrets of its address."""
    return DataNotSent(name=name, location=without_secrets(location), why=why)


def refuse_folder(name: str, location: str, sent: str) -> DataNotSent:
    """Return the error that says that a file would replace a folder; `sent` is the address that it would have."""
    into = "" if location.endswith("/") else "; write a / at the end of the address to send the file into it"
    return unsent(name, sent, f"a folder has that name{into}")


def check_arrived(data: Data, file: Path) -> None:
    """Check a file's size and checksum; raise DataNotThere if one differs."""
    size = file.stat().st_size
    if data.size is not None and size != data.size:
        raise missing(data, f"it has {size} bytes, and {data.size} were expected")
    if not data.checksum:
        return
    kind, _, wanted = data.checksum.partition(":")
    digits = compute_checksum(file, kind.lower())
    if digits != wanted.lower():
        raise missing(data, f"its checksum is {kind.lower()}:{digits}, and {data.checksum} was expected")
