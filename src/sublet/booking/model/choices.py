"""What can be chosen at a site besides sizes: GPU types, node features, licences; and why a choice is a NO."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sublet.booking.model.limits import LIMIT, NOT_SUPPORTED
from sublet.booking.model.offer import Reason
from sublet.booking.model.scheduler import SchedulerOptions

WANTED = re.compile(r"([\w.@+-]+)(?::(\d{1,6}))?")
BETWEEN = re.compile(r"[&,]")  # separates features that must all be there
AROUND = re.compile(r"[\[\]()]|\*\d+|:\d+")  # what stands around a feature's name
MOST_NAMES = 40  # in a sentence


@dataclass(frozen=True, slots=True)
class Choices:
    """The GPU types, node features and licences of a site."""

    gpu_types: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    licenses: Mapping[str, int] | None = None  # how many there are of each; None: not known

    def list_named(self) -> dict[str, str]:
        """Return the names of each sort as text for people."""
        licenses = [f"{name}:{count}" for name, count in (self.licenses or {}).items()]
        named = {"types of GPU": self.gpu_types, "features of nodes": self.features, "licenses": licenses}
        return {what: list_names(names) for what, names in named.items() if names}

    def describe(self) -> list[str]:
        """Return one line of text for each sort."""
        return [f"{what}: {names}" for what, names in self.list_named().items()]


def list_names(names: Sequence[str]) -> str:
    """Join names with commas, as many as a sentence can hold."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def read_licenses(text: str) -> dict[str, int]:
    """Parse licences such as `matlab:2,stata` into how many of each are wanted; raise ValueError if malformed."""
    wanted: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        match = WANTED.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is no license: write NAME or NAME:NUMBER")
        wanted[match[1]] = wanted.get(match[1], 0) + int(match[2] or 1)
    return wanted


def find_lacking(asked: SchedulerOptions, choices: Choices, platform: str) -> Reason | None:
    """Return why features or licences are missing, with those that exist; None if none is, or only the site knows."""
    return find_featureless(asked.constraint, choices.features, platform) or find_unlicensed(
        asked.licenses, choices.licenses, platform
    )


def find_featureless(constraint: str, features: Sequence[str], platform: str) -> Reason | None:
    """Return a reason if each requested alternative names a feature that no node has, else None."""
    alternatives = [_split_names(part) for part in constraint.split("|")]
    missing = [next((name for name in names if name not in features), "") for names in alternatives]
    if not constraint or not all(missing):
        return None
    there = list_names(features)
    has = f"it has: {there}" if there else "its nodes name no features"
    message = f"{platform} has no node with the feature {' or '.join(dict.fromkeys(missing))}; {has}."
    return Reason(NOT_SUPPORTED, "constraint", message, constraint, there, there, platform)


def has_features(constraint: str, features: Sequence[str]) -> bool:
    """Whether these features satisfy one of a constraint's alternatives; for constraints without brackets."""
    return any(all(name in features for name in _split_names(part)) for part in constraint.split("|"))


def _split_names(text: str) -> list[str]:
    return [name for part in BETWEEN.split(text) if (name := AROUND.sub("", part).strip())]


def find_unlicensed(text: str, licenses: Mapping[str, int] | None, platform: str) -> Reason | None:
    """Return why licences are not available; None if they are, or that isn't known."""
    if licenses is None or not text or "|" in text:  # where any one of several is enough, the site knows best
        return None
    try:
        wanted = read_licenses(text)
    except ValueError:
        return None  # the site has its own way to write them
    there = list_names([f"{name}:{count}" for name, count in licenses.items()])
    for name, count in wanted.items():
        if name not in licenses:
            has = f"it has: {there}" if there else "it has none"
            message = f"{platform} has no license {name}; {has}."
            return Reason(NOT_SUPPORTED, "licenses", message, text, there, there, platform)
        if count > (most := licenses[name]):
            message = f"{platform} has {most} licenses of {name} in all; {count} were asked for."
            return Reason(LIMIT, "licenses", message, str(count), str(most), f"{name}:{most}", platform)
    return None


def merge_names(groups: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the names in any of these groups, each once, sorted."""
    return tuple(sorted({name for names in groups for name in names}))
