"""The service's logins to container registries, each for images of certain names only."""

from __future__ import annotations

import base64
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sublet.movers.registries import NotInRegistry, Reference


@dataclass(frozen=True)
class ImageLogin:
    """A login and the images it is for; its password is read only when it is needed."""

    below: str  # a registry, or a prefix of its images' names: ghcr.io/owner
    user: str
    password_file: Path

    def covers(self, reference: Reference) -> bool:
        """Whether the login is for this image."""
        return f"{reference.place}/".startswith(f"{self.below}/")

    @property
    def authorization(self) -> str:
        """The Authorization header for the registry."""
        try:
            if stat.S_IMODE(self.password_file.stat().st_mode) & 0o077:
                raise NotInRegistry(f"others can read {self.password_file}, which has the password; `chmod 600` it")
            password = self.password_file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise NotInRegistry(f"the password for {self.below} can't be read: {error}") from error
        return "Basic " + base64.b64encode(f"{self.user}:{password}".encode()).decode()


def login_for(logins: Iterable[ImageLogin], reference: Reference) -> ImageLogin | None:
    """Return the login that matches an image most specifically, or None."""
    return max((login for login in logins if login.covers(reference)), key=lambda each: len(each.below), default=None)
