"""A local folder that is sent to a session: which of its files, and how large it may be."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sublet.booking.model.amounts import parse_memory
from sublet.kernel.errors import BadRequest
from sublet.kernel.folders import LinkLeadsOut, walk
from sublet.kernel.home import sublet_home
from sublet.kernel.ignore import CLUTTER, SECRETS, Ignore

FILE = ".subletignore"
LIMIT = "SUBLET_WORKDIR_LIMIT"  # the environment variable with the size limit
USUAL_LIMIT = "1GiB"
NAMED = 3  # of the largest entries, named in an error


@dataclass(frozen=True)
class Folder:
    """A folder, and which of its files are sent."""

    path: str
    ignore: tuple[str, ...]
    size: int = 0
    secrets: tuple[str, ...] = ()  # paths that are omitted because they look like secrets
    _paths: frozenset[str] = field(default=frozenset())

    @property
    def name(self) -> str:
        """The folder's name."""
        return os.path.basename(os.path.realpath(self.path)) or "/"

    def holds(self, path: str) -> bool:
        """Whether the file at this relative path is sent."""
        return path in self._paths


def measure_folder(path: str, ignored: Any = ()) -> int:
    """Return the size of a folder's files in bytes; 0 if it can't be read, which is reported when it is sent."""
    try:
        return sum(entry.size for entry in walk(path, Ignore(ignored)))
    except (OSError, LinkLeadsOut, TypeError):
        return 0


def read_folder(path: str, named: str, more: Iterable[str] = ()) -> Folder:
    """Scan a folder; raise BadRequest if it isn't a folder, is too large, or has a link that leads out of it."""
    if not os.path.isdir(path):
        raise BadRequest(detail=f"{named} is not a folder", hint="Bring a single file with --data.")
    own = [*list_ignored(path), *more]
    rules, secret = Ignore([*CLUTTER, *SECRETS, *own]), Ignore([*CLUTTER, *own])
    sizes: Counter[str] = Counter()
    paths: list[str] = []
    secrets: list[str] = []
    try:
        for entry in walk(path, secret):
            if any(entry.path.startswith(f"{skipped}/") for skipped in secrets):
                continue
            if rules.skips(entry.path, is_folder=entry.is_folder):
                secrets.append(entry.path)
                continue
            paths.append(entry.path)
            sizes[entry.path.split("/")[0]] += entry.size
    except LinkLeadsOut as error:
        hint = f"Name the link in {FILE} to leave it behind, and bring what it leads to with --data."
        raise BadRequest(detail=f"the folder {named} can't be brought: {error}", hint=hint) from error
    except OSError as error:
        why = f"{error.filename}: {error.strerror}"
        raise BadRequest(detail=f"the folder {named} can't be brought: {why}") from error
    check_size(named, sizes)
    return Folder(path, (*CLUTTER, *SECRETS, *own), sizes.total(), tuple(secrets), frozenset(paths))


def list_ignored(path: str) -> list[str]:
    """Return the ignore patterns of a folder: those of its .subletignore, and one for SUBLET_HOME inside it."""
    return [*_lines(os.path.join(path, FILE)), *_state_in(path)]


def check_size(named: str, sizes: Counter[str]) -> None:
    """Raise BadRequest if a folder exceeds the size limit, so that nobody sends a huge one by mistake."""
    most = parse_memory(os.environ.get(LIMIT) or USUAL_LIMIT)
    if sizes.total() <= most:
        return
    largest = ", ".join(f"{name} ({round_size(size)})" for name, size in sizes.most_common(NAMED))
    wanted = f"{-(-sizes.total() // (1 << 30))}GiB"
    raise BadRequest(
        detail=f"the folder {named} has {round_size(sizes.total())}, and {round_size(most)} is the most",
        hint=f"The largest in it: {largest}. Leave them behind with {FILE}, or raise the limit: {LIMIT}={wanted}.",
    )


def round_size(size: int) -> str:
    """Return a rounded size for display, such as `12 KiB`."""
    for shift, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << shift:
            return f"{size / (1 << shift):.3g} {unit}"
    return f"{size} B"


def _state_in(path: str) -> list[str]:
    """Return the pattern that ignores SUBLET_HOME, if it is in the folder."""
    top, home = os.path.realpath(path), os.path.realpath(sublet_home().root)
    if not home.startswith(f"{top.rstrip('/')}/"):
        return []
    return ["/" + re.sub(r"([\\*?\[\]!#])", r"\\\1", os.path.relpath(home, top)) + "/"]


def _lines(file: str) -> list[str]:
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as opened:
            lines = opened.read().splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BadRequest(detail=f"{file} can't be read: {error.strerror}") from error
    return [line for line in lines if line.strip() and not line.startswith("#")]
