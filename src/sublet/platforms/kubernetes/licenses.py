"""Licences that a cluster counts as extended resources of its nodes."""

from __future__ import annotations

from collections.abc import Mapping

from sublet.booking.model.choices import read_licenses


def size_licenses(text: str, resources: Mapping[str, str]) -> dict[str, str]:
    """Return what a pod asks for: resource → count; raise ValueError for a licence that the cluster doesn't count."""
    wanted = read_licenses(text)
    for name in wanted.keys() - resources.keys():
        there = ", ".join(sorted(resources))
        raise ValueError(f"it counts no license {name}; {f'it counts: {there}' if there else 'it counts none'}")
    return {resources[name]: str(count) for name, count in wanted.items()}
