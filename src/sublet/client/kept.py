"""The token of a person who signed in to a gateway, in a private file."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass

from sublet.kernel.errors import SubletError
from sublet.kernel.home import sublet_home


@dataclass(frozen=True)
class KeptToken:
    """A token, its gateway, and the person's address."""

    url: str
    email: str
    token: str


def usual_file(url: str) -> str:
    """Return the default file for the token of a gateway."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", url.partition("://")[2] or url).strip("-")
    return os.path.join(sublet_home().root, "users", f"{name}.json")


def read(file: str) -> KeptToken | None:
    """Return the token in a file, or None if there is no such file."""
    try:
        with open(file, encoding="utf-8") as text:
            values = json.load(text)
        return KeptToken(str(values["url"]), str(values["email"]), str(values["token"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SubletError(
            f"{file} can't be read as a kept token: {error}", hint="Remove it, and sign in again."
        ) from error


def write(file: str, kept: KeptToken) -> None:
    """Write the token atomically to a file that only its owner can ever read."""
    os.makedirs(os.path.dirname(os.path.abspath(file)), mode=0o700, exist_ok=True)
    part = f"{file}.{os.getpid()}.part"
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as text:
        json.dump({"url": kept.url, "email": kept.email, "token": kept.token}, text)
    os.replace(part, file)


def forget(file: str) -> None:
    """Delete the file, if it exists."""
    try:
        os.unlink(file)
    except FileNotFoundError:
        pass
