"""What the mode of a service means: the policies that are chosen by it, once, and passed on by the wiring."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from sublet.kernel.settings import Settings
from sublet.movers.app import FOLDER
from sublet.movers.logins import ImageLogin
from sublet.movers.port import Policy


def has_owner(settings: Settings) -> bool:
    """Whether it is one person's own service; else it is a gateway, for many."""
    return settings.mode == "personal"


class MoverPolicies(NamedTuple):
    """What movers may bring, for each of those they work for."""

    usual: Policy
    guests: Policy  # none of them sees this machine's files
    reviewed: Policy  # with the service's own logins, for what was reviewed


def choose_mover_policies(settings: Settings) -> MoverPolicies:
    """On a person's own machine all that they could fetch themselves; strangers' requests are limited."""
    known = Policy(
        rucio_server=settings.rucio_server,
        globus_transfer=settings.globus_transfer,
        globus_auth=settings.globus_auth,
        ivo_resolver=settings.ivo_resolver,
    )
    guests = replace(known, public_only=not settings.private_data, largest=settings.largest_data)
    personal = has_owner(settings)
    asked = replace(known, public_only=False, file_roots=None) if personal else guests
    roots = settings.file_roots
    if roots is not None:
        asked = replace(asked, file_roots=tuple(root.resolve() for root in roots))
    usual = replace(asked, app_archives=settings.home / FOLDER)
    logins = tuple(ImageLogin(below, **dict(login)) for below, login in settings.registries.items())
    reviewed = replace(usual, logins=logins)
    return MoverPolicies(reviewed if personal else usual, guests, reviewed)
