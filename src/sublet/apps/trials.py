"""Trials: an app's author runs it on their own machine, from a directory that nobody has reviewed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sublet.apps.manifests.generic import kinds_of
from sublet.apps.manifests.page import ManifestReading
from sublet.apps.manifests.reader import read_manifest
from sublet.apps.model.manifest import AppImage, Manifest, from_json, to_json
from sublet.apps.model.needs import add_found_places
from sublet.apps.model.request import add_places
from sublet.apps.model.tree import TreeFile, files_of, tree_of
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Request
from sublet.kernel.errors import BadManifest, ImageUnknown, OwnAppsOnly
from sublet.kernel.settings import Settings
from sublet.kinds.app import name_of
from sublet.movers.app import FOLDER, keep
from sublet.people.model.person import Person

PREFIX = "trial:"
KEPT = 20  # trials whose code is kept; running ones have their own copy


@dataclass(frozen=True)
class Trial:
    """An app that can be requested by this name, until later trials replace it."""

    name: str
    manifest: Manifest
    reading: ManifestReading


def is_trial(name: str) -> bool:
    """Whether an app's name is that of a trial."""
    return name.startswith(PREFIX)


@dataclass
class Trials:
    """Tries apps before approval, on services where people run their own code anyway."""

    settings: Settings
    is_allowed: bool  # whether people run their own code here

    def require_allowed(self) -> None:
        """Raise OwnAppsOnly if only reviewed code runs here."""
        if not self.is_allowed:
            raise OwnAppsOnly

    async def try_app(self, archive: bytes, *, name: str = "app", image: str = "", kind: str = "") -> Trial:
        """Pin an archive's content as it is; raise BadTree, BadManifest, ImageUnknown, or OwnAppsOnly in a gateway."""
        self.require_allowed()
        files = await asyncio.to_thread(files_of, archive)
        reading = read(files, self.settings.images, name=name, image=image, kind=kind)
        manifest = reading.manifest
        if manifest is None:
            first = reading.errors[0]
            raise (ImageUnknown if first.is_about_image else BadManifest)(problem=str(first))
        manifest = add_found_places(manifest, {file.path: file.content for file in files})
        tree = await asyncio.to_thread(self._keep_trial, archive, manifest)
        return Trial(f"{PREFIX}{tree}", manifest, reading)

    def _keep_trial(self, archive: bytes, manifest: Manifest) -> str:
        folder = self.settings.home / FOLDER
        tree = keep(folder, archive)
        (folder / f"{tree}.json").write_text(json.dumps(to_json(manifest)))
        old = sorted(folder.glob("*.json"), key=lambda file: file.stat().st_mtime)[:-KEPT]
        for file in old:
            file.with_suffix(".tar").unlink(missing_ok=True)
            file.unlink(missing_ok=True)
        return tree

    async def resolve(self, person: Person, request: Request) -> Request | Reason | None:
        """Return a request for a trial, with its code and manifest pinned; None if it isn't for a trial."""
        executable = request.executable
        if not executable or not is_trial(name_of(executable)):
            return None
        tree = name_of(executable).removeprefix(PREFIX)
        if not self.is_allowed or not tree_of(f"app:{tree}"):
            return _describe_gone(tree)
        manifest = await asyncio.to_thread(_read_stored, self.settings.home / FOLDER / f"{tree}.json")
        if manifest is None:
            return _describe_gone(tree)
        fields = {**executable.fields, "pinned": {"tree": tree, "manifest": manifest}}
        places = add_places(request, from_json(manifest))
        if isinstance(places, Reason):
            return places
        return replace(request, executable=replace(executable, fields=fields), places=places)


def read(
    files: list[TreeFile], images: Mapping[str, AppImage], *, name: str = "app", image: str = "", kind: str = ""
) -> ManifestReading:
    """Read an app's manifest, with the given image (an operator's, or a location) if there is one.

    `kind` is that of the maintainer who would run code without a manifest; empty: any that fits.
    """
    kinds = kinds_of(kind)
    contents = {file.path: file.content for file in files}
    given = {**images, image: images.get(image, AppImage(location=image))} if image else dict(images)
    if image:
        reading = read_manifest(contents, None, name=name, image=image, kinds=kinds)
        if reading.manifest:
            found = given[image]
            return replace(reading, manifest=reading.manifest.pin_to(found.location, found.digest))
        return reading
    return read_manifest(contents, given, name=name, kinds=kinds)


def _read_stored(file: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(file.read_text())
    except (OSError, ValueError):
        return None
    return found


def _describe_gone(tree: str) -> Reason:
    told = "The code of this trial is not here any more."
    return Reason("urn:invalid-value", "executable.app", told, f"{PREFIX}{tree}"[:80], "", "sublet app check DIR --run")
