"""Records of which session at another broker each session here is: a small file each, written before it is accepted."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sublet.platforms.sessiondir import KEY


@dataclass(frozen=True, slots=True)
class TakenOffer:
    """A session at another broker, and the person for whom it was accepted."""

    url: str
    person: str
    by: str = ""  # who cancelled it from here

    @property
    def path(self) -> str:
        """The session's path below the broker's address."""
        return f"/sessions/{self.id}"

    @property
    def id(self) -> str:
        """The session's uuid there."""
        return self.url.rpartition("/")[2]


class TakenOffers:
    """The records of all accepted offers, by the key of the session here."""

    def __init__(self, folder: Path) -> None:
        """Set the folder of the records, and create it."""
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def get(self, key: str) -> TakenOffer | None:
        """Return the record of a session; None if there is none."""
        try:
            return TakenOffer(**json.loads(self._file(key).read_text()))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def put(self, key: str, taken: TakenOffer) -> None:
        """Write a record atomically, and safely against a loss of power."""
        file = self._file(key)
        part = file.with_name(f".{file.name}.{os.getpid()}")
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
            opened.write(json.dumps(asdict(taken)))
            opened.flush()
            os.fsync(opened.fileno())
        part.replace(file)

    def note_cancel(self, key: str, by: str) -> TakenOffer | None:
        """Record who cancelled a session first, and return its record."""
        taken = self.get(key)
        if taken and not taken.by:
            taken = replace(taken, by=by)
            self.put(key, taken)
        return taken

    def remove(self, key: str) -> None:
        """Remove the record of a session."""
        self._file(key).unlink(missing_ok=True)

    def _file(self, key: str) -> Path:
        if not KEY.fullmatch(key):
            raise ValueError(f"{key!r} can't be the name of a session")
        return self._folder / key
