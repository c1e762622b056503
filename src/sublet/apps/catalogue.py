"""The apps that there are, and what of them someone may see."""

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
    """An app with its versions, the newest first, as far as someone may see them."""

    app: App
    versions: Sequence[Version]

    @property
    def current(self) -> Version | None:
        """The version that is run if none is named."""
        return next((version for version in self.versions if version.state is P.APPROVED), None)


@dataclass
class AppCatalogue:
    """Look at apps."""

    settings: Settings
    store: Store
    presenter: Presenter
    quotas: Quotas

    @property
    def archives(self) -> Path:
        """Where the code of apps is kept."""
        return self.settings.home / FOLDER

    def app_link(self, version: Version) -> str:
        """The page on which a version is looked at."""
        return self.presenter.page(f"apps/{version.app}/{version.number}")

    async def apps(self, person: Person) -> list[AppState]:
        """Those that a person may run, and for those who bring or review them all."""
        states = await self.app_states()
        return [shown for state in states if (shown := await self._find_visible(state, person))]

    async def list_approved(self) -> list[AppState]:
        """All that are approved, for a catalogue that anyone may read: whoever runs one is asked who they are."""
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
        """One of them."""
        known = await self.app_state(name)
        shown = await self._find_visible(known, person) if known else None
        if shown is None:
            raise await self.find_revocation(known, person) or NotFound(noun="app", name=name, hint=HINT)
        return shown

    async def find_revocation(
        self, state: AppState | None, person: Person, number: int | None = None
    ) -> AppRevoked | None:
        """That an app was revoked, for who could run it otherwise; None: that is not why, or not for them to know."""
        taken = find_revoked(state.versions, number) if state else None
        if state is None or taken is None:
            return None
        known = decides(person) or state.app.person == person.name
        if not known and await self.quotas.find_refusal(person, "app", taken.app) is not None:
            return None
        return AppRevoked(version=taken.name, when=taken.when, why=taken.why)

    async def _find_visible(self, state: AppState, person: Person) -> AppState | None:
        """What of an app someone may see; None: nothing."""
        if decides(person) or state.app.person == person.name:
            return state
        own = [
            version for version in state.versions if version.state is P.APPROVED or version.proposed_by == person.name
        ]
        allowed = bool(own) and await self.quotas.find_refusal(person, "app", state.app.name) is None
        mine = any(one.proposed_by == person.name for one in own)
        return replace(state, versions=own) if allowed or mine else None

    async def version_of(self, ref: str, person: Person) -> Version:
        """`summa@3`, or the one that `summa` means: of what waits for a decision the newest, else what is run."""
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
    """What the audit log says of a version: all that pins it."""
    names = ("repository", "branch", "commit", "tree", "manifest_hash", "image", "digest")
    return {name: getattr(version, name) for name in names}


def read_archive(folder: Path, tree: str) -> bytes | None:
    """An archive, if it is there and is what its name says."""
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
