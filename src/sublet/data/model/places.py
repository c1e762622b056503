"""Declared places on a system: reference data, directories that people share, and each person's own scratch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from hashlib import sha256

from sublet.booking.model.places import PLACE_NAME, PlaceWish

LEAST_KEEP, USUAL_KEEP, LONGEST_KEEP = timedelta(minutes=1), timedelta(days=7), timedelta(days=366)
LONGEST_PATH = 1000
BEGINNING = re.compile(r"/|~/|\$[A-Za-z_][A-Za-z0-9_]*(/|$)")
SYSTEM = ("bin", "boot", "dev", "etc", "job", "lib", "lib64", "proc", "root", "run", "sbin", "sublet", "sys", "usr")
UNUSABLE = set(":,\\\"'`")


class PlaceKind(StrEnum):
    """What a place is for."""

    REFERENCE = "reference"  # data that everyone reads and no session changes
    SHARED = "shared"  # a directory that all who may use it share
    SCRATCH = "scratch"  # a directory of each person's own, removed when its retention time is over


@dataclass(frozen=True, slots=True)
class DeclaredPlace:
    """A directory of one platform that sessions may request by name."""

    name: str
    platform: str
    kind: PlaceKind
    path: str  # on the platform; scratch directories are made below it (empty: below Sublet's own directory)
    target: str  # where containers see it
    writable: bool
    keep: timedelta  # how long scratch is kept after its last use
    apps: tuple[str, ...]  # patterns of the apps that may use it; empty: any session may
    note: str
    created: datetime
    by: str
    quota: int = 0  # bytes per person in scratch; 0: no limit


@dataclass(frozen=True, slots=True)
class ScratchUse:
    """One person's directory in a scratch place."""

    platform: str
    place: str
    person: str
    path: str  # the place's path when the directory was made
    until: datetime  # removed then, unless it is used again


def check_declared(place: DeclaredPlace) -> str:
    """Return what is wrong with a place; empty if nothing is."""
    is_scratch = place.kind is PlaceKind.SCRATCH
    if not PLACE_NAME.fullmatch(place.name):
        return "its name has letters, digits, `_` and `-`, begins with a letter, and has at most 40 characters"
    if not place.path and not is_scratch:
        return "its path is missing: the directory on the system"
    if place.path and (why := _check_path(place.path)):
        return f"its path {why}"
    if why := check_target(place.target):
        return why
    if place.kind is PlaceKind.REFERENCE and place.writable:
        return "reference data can't be written; declare it as shared"
    if is_scratch and not place.writable:
        return "scratch that can't be written is of no use"
    if place.quota < 0 or (place.quota and not is_scratch):
        return "a quota is for scratch, and a number of bytes from 0 on"
    if is_scratch and not LEAST_KEEP <= place.keep <= LONGEST_KEEP:
        return "its keep time is between a minute and a year"
    return ""


def _check_path(path: str) -> str:
    if not BEGINNING.match(path):
        return "begins with /, ~/ or a variable of the account's environment, as $SCRATCH"
    if not is_usable(path):
        return "has characters that container tools can't be given, such as : and ,"
    if ".." in path.split("/"):
        return "has a .. in it"
    return ""


def is_usable(path: str) -> bool:
    """Whether every container tool accepts this path."""
    return len(path) <= LONGEST_PATH and path.isprintable() and not UNUSABLE & set(path)


def check_target(target: str) -> str:
    """Return what is wrong with the path at which containers would see a place; empty if nothing is."""
    parts = target.strip("/").split("/")
    if not target.startswith("/") or not target.strip("/"):
        return "containers see it at a path from / on, such as /compute_shared"
    if any(part in ("", ".", "..") for part in parts) or not target.isprintable() or UNUSABLE & set(target):
        return f"containers can't see it at {target}: that is no plain path"
    if parts[0] in SYSTEM:
        return f"containers can't see it at {target}: /{parts[0]} is the image's own, or the session's"
    return ""


def check_link(path: str) -> str:
    """Return what is wrong with the path of a link below the working directory; empty if nothing is."""
    parts = path.split("/")
    if path.startswith("/"):
        return "it runs without a container, and sees places below its working directory alone"
    if any(part in ("", ".", "..") for part in parts) or parts[0] == ".sublet" or not path.isprintable():
        return "that is no plain path below the working directory"
    return ""


def find_place(places: Sequence[DeclaredPlace], wish: PlaceWish) -> DeclaredPlace | None:
    """Return the place that a request means: the one of this name, or the one that containers see at this path."""
    paths = {wish.path, f"/{wish.name}"}
    named = next((place for place in places if place.name == wish.name), None)
    return named or next((place for place in places if place.target in paths), None)


def admits_app(place: DeclaredPlace, app: str) -> bool:
    """Whether sessions of this app (empty: of no app) may use a place."""
    return not place.apps or any(fnmatchcase(app, pattern) for pattern in place.apps if app)


def scratch_name(place: str, person: str) -> str:
    """Return the name of a person's directory in a scratch place, which doesn't reveal whose it is."""
    return f"{place}-{sha256(person.encode()).hexdigest()[:24]}"


def describe_missing(wish: PlaceWish, platform: str, places: Sequence[DeclaredPlace]) -> str:
    """Say that a platform has no such place, and which it has."""
    names = ", ".join(place.name for place in places)
    return f"{platform} has no place {wish.name}{f'; it has: {names}' if names else ''}."


def describe_declaring(name: str, platform: str = "SYSTEM") -> str:
    """Return the command that declares a place."""
    return f"sublet place add {name} --on {platform} --path DIRECTORY"
