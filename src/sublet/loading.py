"""Loads the plug-ins that a service uses, each with what is wrong with those that can't be loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sublet.booking.platforms.changes import admit_platforms
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.session_results import SessionResultsMover
from sublet.booking.system_files import SystemFilesMover
from sublet.data.executables import ExecutableKinds, Movers
from sublet.data.model.credentials import Credential
from sublet.data.uploads.area import UploadArea
from sublet.data.uploads.mover import UploadMover
from sublet.kernel.settings import Settings
from sublet.kinds.registry import survey_kinds
from sublet.movers.port import AnyMover, Mover
from sublet.movers.registry import survey_movers
from sublet.platforms.port import Platform
from sublet.platforms.registry import load_platforms
from sublet.policies import MoverPolicies
from sublet.store.store import Store


def load_executable_kinds(*, contained_only: bool) -> tuple[ExecutableKinds, dict[str, str]]:
    """The kinds that are installed."""
    kinds = survey_kinds()
    return ExecutableKinds(kinds.by_name, contained_only), {f"kind {name}": why for name, why in kinds.broken.items()}


def load_movers(policies: MoverPolicies, own: Sequence[AnyMover] = ()) -> tuple[Movers, dict[str, str]]:
    """The movers that are installed, made for each of those they may work for; and `own`, which are the service's."""
    usual, guests, reviewed = map(survey_movers, policies)
    broken = {f"mover {name}": why for name, why in usual.broken.items()}

    def remake(credentials: Sequence[Credential]) -> Movers:
        usual, checked = (
            survey_movers(replace(policy, credentials=credentials)).found
            for policy in (policies.usual, policies.reviewed)
        )
        return Movers((*usual, *own), guests.found, checked)

    return Movers((*usual.found, *own), guests.found, reviewed.found, remake), broken


def load_known_platforms(settings: Settings, *, own_logins: bool) -> tuple[dict[str, Platform], dict[str, str]]:
    """The platforms of the settings; none is open yet."""
    return admit_platforms(*load_platforms(settings.platforms, settings.refuse), own_logins=own_logins)


def list_own_movers(store: Store, platforms: KnownPlatforms, area: UploadArea, *, own_logins: bool) -> list[Mover]:
    """The movers that know what only the service knows: results, uploads, and logins if they are the asker's own."""
    files = SystemFilesMover(platforms, is_allowed=own_logins)
    return [SessionResultsMover(store, platforms), UploadMover(store, area), files]
