"""Small files embedded in an address (RFC 2397): `data:text/plain;charset=utf-8;name=a.txt,hello`."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from urllib.parse import quote, unquote, unquote_to_bytes

SCHEME = "data:"
MOST = 1 << 16  # bytes of content
MOST_URL = 2 * MOST  # characters
SHOWN = 60  # characters shown of a longer address
NO_NAME = "data"
EXECUTABLE = "executable=yes"  # a parameter of our own: the file is a program
SAFE = "/:;,=@&+$!*'()~-._?[]{}|"


@dataclass(frozen=True)
class DataUrl:
    """The file that a data URL contains."""

    name: str  # of the file, as the person gave it: not sanitized yet
    content: bytes
    is_executable: bool = False


def is_data_url(location: str) -> bool:
    """Whether an address is a data URL."""
    return location[: len(SCHEME)].lower() == SCHEME


def read_data_url(location: str) -> DataUrl:
    """Decode the file in a data URL; raise ValueError if the URL is malformed or the file too large."""
    facts, comma, body = location[len(SCHEME) :].partition(",")
    if not comma:
        raise ValueError("it has no comma, after which the content would be")
    _, *parameters = facts.split(";")
    content = unquote_to_bytes(body)
    if parameters and parameters[-1].strip().lower() == "base64":
        content = decode_base64(content.decode("ascii", "replace"))
    if len(content) > MOST:
        raise ValueError(f"it has {len(content)} bytes, and at most {MOST} can be in a request")
    return DataUrl(find_name(location), content, EXECUTABLE in parameters)


def find_name(location: str) -> str:
    """Return the file name that a data URL gives in its `name` parameter, or a default."""
    facts = location[len(SCHEME) :].partition(",")[0]
    names = [word.partition("=")[2] for word in facts.split(";")[1:] if word.lower().startswith("name=")]
    return unquote(names[0]) if names and names[0] else NO_NAME


def write_data_url(name: str, content: bytes, *, is_executable: bool = False) -> str:
    """Return a data URL that contains a file: as readable text, or as base64 where that is shorter."""
    packed = base64.b64encode(content).decode()
    try:
        plain = quote(content.decode("utf-8"), safe=SAFE)
    except UnicodeDecodeError:
        plain = ""
    facts = f"name={quote(name, safe='')}{f';{EXECUTABLE}' if is_executable else ''}"
    if (plain and len(plain) <= len(packed)) or not content:
        return f"{SCHEME}text/plain;charset=utf-8;{facts},{plain}"
    return f"{SCHEME}application/octet-stream;{facts};base64,{packed}"


def decode_base64(text: str) -> bytes:
    """Decode base64 text, ignoring white space; raise ValueError if it is malformed."""
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("its content is no base64") from error


def shorten_location(location: str) -> str:
    """Return an address for display; a long data URL is cut short."""
    if not is_data_url(location) or len(location) <= SHOWN:
        return location
    return f"{location[:SHOWN]}… ({len(location)} characters)"
