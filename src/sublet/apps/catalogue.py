"""The catalogue of apps, and what of them a person may see."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from sublet.access.quotas import Quotas
from sublet.apps.model.app import App, Version, VersionState, find_revoked, read_ref
from sublet.apps.model.tree import hash_of
from sublet.booking.presenter import Presenter
from sublet.kernel.errors import AppRevoked, NotFound
from sublet.kernel.settings import Settings
from sublet.movers.app import FOLDER
from sublet.people.model.person import Person
from sublet.store.store import Store

HINT = "`sublet app list` lists the apps."
P = VersionState


@dataclass(frozen=True, slots=True)
class AppState:
    """An app with its versions, newest first, as far as the viewer may see them."""

    app: App
    versions: Sequence[Version]

    @property
    def current(self) -> Version | None:
        """The version that runs if none is named."""
        return next((version for version in self.versions if version.state is P.APPROVED), None)


@dataclass
class AppCatalogue:
    """Lists and shows apps."""

    settings: Settings
    store: Store
    presenter: Presenter
    quotas: Quotas

    @property
    def archives(self) -> Path:
        """The directory of apps' code."""
        return self.settings.home / FOLDER

    def app_link(self, version: Version) -> str:
        """Return the address of a version's page."""
        return self.presenter.page(f"apps/{version.app}/{version.number}")

    async def apps(self, person: Person) -> list[AppState]:
        """List the apps that a person may run; reviewers and owners see all versions."""
        states = await self.app_states()
        return [shown for state in states if (shown := await self._find_visible(state, person))]

    async def list_approved(self) -> list[AppState]:
        """List all approved apps, for a public catalogue: authentication is needed only to run one."""
        states = [
            replace(state, versions=[version for version in state.versions if version.state is P.APPROVED])
            for state in await self.app_states()
        ]
        return [state for state in states if state.versions]

    async def app_states(self) -> list[AppState]:
        return await self.store.read(lambda tx: [AppState(app, tx.apps.versions(app.name)) for app in tx.apps.list()])

    async def app_state(self, name: str) -> AppState | None:
        return await self.store.read(
            lambda tx: AppState(app, tx.apps.versions(name)) if (app := tx.apps.get(name)) else None
        )

    async def app(self, name: str, person: Person) -> AppState:
        """Return one app."""
        known = await self.app_state(name)
        shown = await self._find_visible(known, person) if known else None
        if shown is None:
            raise await self.find_revocation(known, person) or NotFound(noun="app", name=name, hint=HINT)
        return shown

    async def find_revocation(
        self, state: AppState | None, person: Person, number: int | None = None
    ) -> AppRevoked | None:
        """Return the error that an app was revoked, for those who could otherwise run it;

        None if it wasn't, or isn't for them.
        """
        taken = find_revoked(state.versions, number) if state else None
        if state is None or taken is None:
            return None
        known = decides(person) or state.app.person == person.name
        if not known and await self.quotas.find_refusal(person, "app", taken.app) is not None:
            return None
        return AppRevoked(version=taken.name, when=taken.when, why=taken.why)

    async def _find_visible(self, state: AppState, person: Person) -> AppState | None:
        """Return an app with the versions that a person may see; None if there are none."""
        if decides(person) or state.app.person == person.name:
            return state
        own = [
            version for version in state.versions if version.state is P.APPROVED or version.proposed_by == person.name
        ]
        allowed = bool(own) and await self.quotas.find_refusal(person, "app", state.app.name) is None
        mine = any(one.proposed_by == person.name for one in own)
        return replace(state, versions=own) if allowed or mine else None

    async def version_of(self, ref: str, person: Person) -> Version:
        """Return the version of `summa@3`; for `summa` the newest proposed one, or else the one that runs."""
        name, number = read_ref(ref)
        state = await self.app(name, person)
        if number is None:
            return next((version for version in state.versions if version.state is P.PROPOSED), None) or _first(state)
        for version in state.versions:
            if version.number == number:
                return version
        raise NotFound(noun="version", name=ref, hint=f"`sublet app show {name}` lists them.")

    async def sweep_apps(self, now: datetime) -> list[str]:
        """Remove archives that no version needs any more."""
        needed = await self.store.read(lambda tx: tx.apps.trees(now - self.settings.keep))
        return await asyncio.to_thread(_sweep, self.archives, needed, (now - self.settings.keep).timestamp())


def decides(person: Person) -> bool:
    """Whether someone may decide on apps."""
    return person.operator or person.reviewer


def detail_of(version: Version) -> dict[str, str]:
    """Return what the audit log records of a version: everything that pins it."""
    names = ("repository", "branch", "commit", "tree", "manifest_hash", "image", "digest")
    return {name: getattr(version, name) for name in names}


def read_archive(folder: Path, tree: str) -> bytes | None:
    """Return an archive, if it exists and matches its hash; otherwise None."""
    try:
        archive = (folder / f"{tree}.tar").read_bytes()
    except FileNotFoundError:
        return None
    return archive if hash_of(archive) == tree else None


def _first(state: AppState) -> Version:
    return state.current or state.versions[0]


def _sweep(folder: Path, needed: set[str], before: float) -> list[str]:
    if not folder.is_dir():
        return []
    gone = [file for file in folder.glob("*.tar") if file.stem not in needed and file.stat().st_mtime < before]
    for file in gone:
        file.unlink(missing_ok=True)
    return [file.stem for file in gone]
