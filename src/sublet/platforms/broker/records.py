"""Which session of another broker each session here is: a small file for each, written before it is accepted there."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sublet.platforms.sessiondir import KEY


@dataclass(frozen=True, slots=True)
class TakenOffer:
    """A session of another broker, and for whom it was taken."""

    url: str
    person: str
    by: str = ""  # who cancelled it from here

    @property
    def path(self) -> str:
        """Its address below that of its broker."""
        return f"/sessions/{self.id}"

    @property
    def id(self) -> str:
        """Its uuid there."""
        return self.url.rpartition("/")[2]


class TakenOffers:
    """All of them, by the session here."""

    def __init__(self, folder: Path) -> None:
        """Kept in a folder of the platform's own."""
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def get(self, key: str) -> TakenOffer | None:
        """The one of a session here."""
        try:
            return TakenOffer(**json.loads(self._file(key).read_text()))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def put(self, key: str, taken: TakenOffer) -> None:
        """Remember it, whole or not at all, also after a loss of power."""
        file = self._file(key)
        part = file.with_name(f".{file.name}.{os.getpid()}")
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
            opened.write(json.dumps(asdict(taken)))
            opened.flush()
            os.fsync(opened.fileno())
        part.replace(file)

    def note_cancel(self, key: str, by: str) -> TakenOffer | None:
        """Remember who cancelled it first."""
        taken = self.get(key)
        if taken and not taken.by:
            taken = replace(taken, by=by)
            self.put(key, taken)
        return taken

    def remove(self, key: str) -> None:
        """Forget it."""
        self._file(key).unlink(missing_ok=True)

    def _file(self, key: str) -> Path:
        if not KEY.fullmatch(key):
            raise ValueError(f"{key!r} can't be the name of a session")
        return self._folder / key
