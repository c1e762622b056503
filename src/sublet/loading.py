"""Loads the plug-ins of a service, and reports why others can't be loaded."""

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
    """Load the installed kinds; return them, and the reasons of those that can't be loaded."""
    kinds = survey_kinds()
    return ExecutableKinds(kinds.by_name, contained_only), {f"kind {name}": why for name, why in kinds.broken.items()}


def load_movers(policies: MoverPolicies, own: Sequence[AnyMover] = ()) -> tuple[Movers, dict[str, str]]:
    """Load the installed movers once for each policy, and add the service's `own`; return also what can't be loaded."""
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
    """Load the platforms in the settings, without opening them; return also what can't be loaded."""
    return admit_platforms(*load_platforms(settings.platforms, settings.refuse), own_logins=own_logins)


def list_own_movers(store: Store, platforms: KnownPlatforms, area: UploadArea, *, own_logins: bool) -> list[Mover]:
    """Return the movers that need the service itself: for results, uploads and files over the asker's own logins."""
    files = SystemFilesMover(platforms, is_allowed=own_logins)
    return [SessionResultsMover(store, platforms), UploadMover(store, area), files]
