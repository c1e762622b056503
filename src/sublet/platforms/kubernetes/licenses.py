"""Licences that a cluster counts as extended resources of its nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping

WANTED = re.compile(r"([\w.@+-]+)(?::(\d{1,6}))?")


def read_licenses(text: str) -> dict[str, int]:
    """How many of each are wanted: `matlab:2,stata`; ValueError, in words, for what can't be read."""
    wanted: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        match = WANTED.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is no license: write NAME or NAME:NUMBER")
        wanted[match[1]] = wanted.get(match[1], 0) + int(match[2] or 1)
    return wanted


def size_licenses(text: str, resources: Mapping[str, str]) -> dict[str, str]:
    """What a pod asks for: resource → how many. Raises ValueError for a licence that the cluster doesn't count."""
    wanted = read_licenses(text)
    for name in wanted.keys() - resources.keys():
        there = ", ".join(sorted(resources))
        raise ValueError(f"it counts no license {name}; {f'it counts: {there}' if there else 'it counts none'}")
    return {resources[name]: str(count) for name, count in wanted.items()}
