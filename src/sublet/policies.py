"""The policies that follow from a service's mode, chosen once and passed on by the wiring."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from sublet.kernel.settings import Settings
from sublet.movers.app import FOLDER
from sublet.movers.logins import ImageLogin
from sublet.movers.port import Policy


def has_owner(settings: Settings) -> bool:
    """Whether this is a personal service, rather than a gateway."""
    return settings.mode == "personal"


class MoverPolicies(NamedTuple):
    """What movers may transfer, depending on whom they work for."""

    usual: Policy
    guests: Policy  # can't read this machine's files
    reviewed: Policy  # for reviewed apps, with the service's own logins


def choose_mover_policies(settings: Settings) -> MoverPolicies:
    """Return the movers' policies: a personal service's owner isn't restricted, strangers' requests are."""
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
