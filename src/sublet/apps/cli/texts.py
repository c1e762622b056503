"""Versions of apps, as commands name and show them."""

from __future__ import annotations

import click

from sublet.apps.calls import apps
from sublet.apps.views.apps import VersionView
from sublet.cli.output import pairs
from sublet.client.link import Link

SHORT = 12  # digits of a commit that are shown


def split_version(ref: str) -> tuple[str, int | None]:
    """Split `flood@2` into name and number."""
    name, at, number = ref.partition("@")
    if at and not number.isdecimal():
        raise click.UsageError(f"{ref} is not a version: write flood@2.")
    return name, int(number) if at else None


def find_number(link: Link, ref: str, state: str = "proposed") -> tuple[str, int]:
    """Return the version that is meant; without a number the newest in this state, or else the newest."""
    name, number = split_version(ref)
    if number is not None:
        return name, number
    versions = link.do(apps.app(name)).versions
    return name, next((version.number for version in versions if version.state == state), versions[0].number)


def version_lines(version: VersionView) -> list[str]:
    """Describe a version: everything that pins it, its state and findings."""
    decided = f"{version.state} by {version.decided_by}" if version.decided_by else version.state
    facts = [
        ("version", version.name),
        ("state", f"{decided}: {version.why}" if version.why else decided),
        ("repository", version.repository),
        ("branch", version.branch),
        ("commit", version.commit),
        ("author", f"{version.author}, {version.written}" if version.author else ""),
        ("subject", version.subject),
        ("proposed by", version.proposed_by),
        ("image", version.image),
        ("digest", version.digest or ("not known" if version.image else "")),
        ("manifest", version.manifest_hash),
        ("tree", version.tree),
    ]
    return [*pairs(facts), *(["", *version.findings] if version.findings else [])]
