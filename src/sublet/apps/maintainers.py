"""Maintainers: the operator's generic images, and the repositories that were approved for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sublet.apps.catalogue import AppCatalogue
from sublet.apps.model.app import Version
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person


@dataclass(frozen=True, slots=True)
class MaintainerState:
    """A generic image, and the apps that someone may run in it."""

    name: str
    kind: str
    image: str
    digest: str
    systems: tuple[str, ...]
    apps: Mapping[str, str]  # app → its repository


@dataclass
class Maintainers:
    """Lists the images that the operator offers to code without its own."""

    settings: Settings
    catalogue: AppCatalogue

    async def maintainers(self, person: Person) -> list[MaintainerState]:
        """List the maintainers, with the approved apps of each that this person may see."""
        current = [app.current for app in await self.catalogue.apps(person)]
        return [
            MaintainerState(
                name,
                setting.kind,
                setting.image,
                setting.digest,
                setting.hpc,
                {version.app: version.repository for version in current if version and maintainer_of(version) == name},
            )
            for name, setting in self.settings.maintainers.items()
        ]

    def is_approved_for(self, maintainer: str, version: Version) -> bool:
        """Whether a version was approved for this maintainer; True if there is no such maintainer."""
        return maintainer not in self.settings.maintainers or maintainer_of(version) == maintainer


def maintainer_of(version: Version) -> str:
    """Return the name of the image that a version runs in; empty if it has none."""
    return version.as_manifest().image.name
