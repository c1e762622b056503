"""Proposing apps: a repository is read, its manifest and its image are settled, and all of it waits for a reviewer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from uuid import uuid4

from sublet.core.app import (
    App,
    Change,
    Version,
    VersionState,
    changes,
    check_name,
    hash_manifest,
    manifest_diff,
    name_of,
    notes_on,
    read_ref,
    revoked,
)
from sublet.core.manifest import Image, Manifest, to_json
from sublet.core.repository import Snapshot
from sublet.core.request import Data
from sublet.core.tree import TreeFile, archive_of, files_of, hash_of
from sublet.errors import AppRevoked, AppTaken, BadManifest, DataNotThere, NotDecidable, NotFound, NotYours, TooManyOpen
from sublet.movers.app import FOLDER, keep
from sublet.movers.port import Pins
from sublet.movers.registries import read_reference
from sublet.service.desk import Desk, Person, log
from sublet.service.repositories import Repositories
from sublet.store.audit import Entry
from sublet.store.tx import Tx
from sublet.wire.manifests.reader import read_manifest

MOST_OPEN = 20  # proposals of one person that nobody has decided on
MOST_FINDINGS = 200
AT_ONCE = 2  # repositories that are read at a time
NO_IMAGE = "error: there is no image: say in the manifest which one, or name a maintainer whose image is used."
UNKNOWN_DIGEST = "error: it is not known which image {image} is now: {why}"
HINT = "`sublet app list` shows those that there are."
P = VersionState


@dataclass(frozen=True, slots=True)
class AppState:
    """An app with its versions, the newest first, as far as someone may see them."""

    app: App
    versions: Sequence[Version]

    @property
    def current(self) -> Version | None:
        """The version that is run if none is named."""
        return next((one for one in self.versions if one.state is P.APPROVED), None)


@dataclass(frozen=True, slots=True)
class Review:
    """All that someone who decides on a version has to see."""

    version: Version
    files: Sequence[TreeFile]
    base: Version | None  # the last one that was approved before
    changes: Sequence[Change]
    manifest_diff: str


@dataclass(frozen=True, slots=True)
class Upstream:
    """What has become of a version's repository; nothing of that changes what is run."""

    version: Version
    tip: str
    words: str


class Proposing(Desk):
    """Propose apps, and look at them."""

    @cached_property
    def repositories(self) -> Repositories:
        """Where code comes from."""
        return Repositories(self.settings.apps, self.settings.home / "fetching", self.settings.private_data)

    @cached_property
    def _reading(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(AT_ONCE)

    @property
    def archives(self) -> Path:
        """Where the code of apps is kept."""
        return self.settings.home / FOLDER

    async def propose(
        self,
        person: Person,
        repository: str,
        *,
        branch: str = "",
        commit: str = "",
        name: str = "",
        maintainer: str = "",
        host: str = "",
    ) -> Version:
        """Bring a repository before the reviewers, as it is now; the same again is the same version."""
        if name:
            check_name(name)
        if maintainer and maintainer not in self.settings.maintainers:
            there = self.settings.maintainers
            known = ", ".join(f"{one} (kind {there[one].kind})" for one in there) or "none"
            raise NotFound(noun="maintainer", name=maintainer, hint=f"There are: {known}.")
        if not person.operator and await self.store.read(lambda tx: tx.apps.count_open(person.name)) >= MOST_OPEN:
            told = f"You have {MOST_OPEN} proposals already that nobody has decided on."
            raise TooManyOpen(told, hint="Wait until a reviewer has: `sublet app list` shows them.")
        if not person.operator:
            self.throttle.spend("proposal", person.name)
        async with self._reading:
            found = await self.repositories.fetch(repository, branch, commit)
        otherwise = name or name_of(found.repository.rpartition("/")[2].removesuffix(".git"))
        version = await self._version(person, found, name, otherwise, maintainer)
        archive = archive_of(found.files)
        await asyncio.to_thread(keep, self.archives, archive)
        kept, new = await self.store.write(lambda tx: self._propose(tx, person, version, host))
        if new:
            log.info("app.proposed", app=kept.name, person=person.name, commit=kept.commit, tree=kept.tree)
            await self._tell_reviewers(kept)
        return kept

    async def _version(self, person: Person, found: Snapshot, name: str, otherwise: str, maintainer: str) -> Version:
        """What is proposed, with its image settled as far as that can be."""
        contents = {file.path: file.content for file in found.files}
        generic = self.settings.maintainers.get(maintainer)
        images = dict(self.settings.images)
        if generic:
            images[maintainer] = Image(location=generic.image, digest=generic.digest)
        kinds = (generic.kind,) if generic else ()
        reading = read_manifest(contents, images, name=otherwise, image=maintainer, kinds=kinds)
        if reading.manifest is None:
            raise BadManifest(problem="; ".join(map(str, reading.errors)))
        manifest = reading.manifest
        if generic and not manifest.image:
            manifest = replace(manifest, image=Image(maintainer, generic.image, generic.digest))
        if generic and manifest.image.name == maintainer and generic.hpc and not manifest.systems:
            manifest = replace(manifest, systems=generic.hpc)
        manifest, trouble = await self._settled(manifest)
        plain = to_json(manifest)
        findings = [*trouble, *map(str, reading.findings), *notes_on(found.files)]
        return Version(
            id=str(uuid4()),
            app=check_name(name or name_of(manifest.name) or otherwise),
            number=0,
            repository=found.repository,
            branch=found.branch,
            commit=found.commit,
            tree=hash_of(archive_of(found.files)),
            manifest=plain,
            manifest_hash=hash_manifest(plain),
            image=manifest.image.location,
            digest=manifest.image.digest,
            state=P.PROPOSED,
            proposed=self.now(),
            proposed_by=person.name,
            author=found.author,
            written=found.written,
            subject=found.subject,
            findings=tuple(findings[:MOST_FINDINGS]),
        )

    async def _settled(self, manifest: Manifest) -> tuple[Manifest, list[str]]:
        """The manifest with exactly one image; or why it is not known which one that is."""
        image = manifest.image
        if not image.location:
            return manifest, [NO_IMAGE]
        reference = read_reference(image.location)
        if reference is None and not image.name:
            told = f"the image {image.location} is in no registry; write it as in docker://ghcr.io/owner/name:tag"
            raise BadManifest(problem=told)
        if image.digest or reference is None:
            why = "an operator has to say its digest in the section [images]."
            return manifest, [] if image.digest else [UNKNOWN_DIGEST.format(image=image.location, why=why)]
        location = f"docker://{image.location.removeprefix('docker://')}"
        data = Data("image", "simple-data-resource", location)
        try:
            mover = self.mover_for(data, reviewed=bool(image.name))  # logins are for the operator's own images
            pinned = await mover.pin(data) if isinstance(mover, Pins) else data
        except DataNotThere as error:
            return manifest, [UNKNOWN_DIGEST.format(image=image.location, why=error.message)]
        return manifest.pinned_to(location.partition("@")[0], pinned.location.rpartition("@")[2]), []

    def _propose(self, tx: Tx, person: Person, version: Version, host: str) -> tuple[Version, bool]:
        app, now = tx.apps.get(version.app), self.now()
        if app and app.person != person.name and not person.operator:
            raise AppTaken(name=app.name, owner=app.person)
        last = tx.apps.newest(version.app)
        if last and last.same_as(version) and last.state in (P.PROPOSED, P.APPROVED):
            return last, False
        if app is None:
            tx.apps.add(App(version.app, person.name, version.repository, now))
        numbered = replace(version, number=tx.apps.next_number(version.app))
        tx.apps.add_version(numbered)
        tx.audit.add(Entry(now, person.name, "app.propose", "app", numbered.name, detail_of(numbered), host))
        return numbered, True

    async def _tell_reviewers(self, version: Version) -> None:
        reviewers = await self.store.read(lambda tx: tx.apps.reviewers())
        text = (
            f"{version.proposed_by} proposes {version.name}: {version.repository}, branch {version.branch}, "
            f"commit {version.commit}.\n\nLook at it there: {self.app_link(version)}\n"
            f"or with: sublet app review {version.name}\n"
        )
        others = [one for one in reviewers if one != version.proposed_by]
        await self.mail.send_each(others, f"{version.name} is proposed", text)

    def app_link(self, version: Version) -> str:
        """The page on which a version is looked at."""
        return self.page(f"apps/{version.app}/{version.number}")

    async def apps(self, person: Person) -> list[AppState]:
        """Those that a person may run, and for those who bring or review them all."""
        states = await self._app_states()
        return [shown for one in states if (shown := await self._seen(one, person))]

    async def _app_states(self) -> list[AppState]:
        return await self.store.read(lambda tx: [AppState(app, tx.apps.versions(app.name)) for app in tx.apps.list()])

    async def _app_state(self, name: str) -> AppState | None:
        return await self.store.read(
            lambda tx: AppState(app, tx.apps.versions(name)) if (app := tx.apps.get(name)) else None
        )

    async def app(self, name: str, person: Person) -> AppState:
        """One of them."""
        found = await self._app_state(name)
        shown = await self._seen(found, person) if found else None
        if shown is None:
            raise await self.gone(found, person) or NotFound(noun="app", name=name, hint=HINT)
        return shown

    async def gone(self, state: AppState | None, person: Person, number: int | None = None) -> AppRevoked | None:
        """That an app was revoked, for who could run it otherwise; None: that is not why, or not for them to know."""
        taken = revoked(state.versions, number) if state else None
        if state is None or taken is None:
            return None
        known = decides(person) or state.app.person == person.name
        if not known and await self.refused(person, "app", taken.app) is not None:
            return None
        return AppRevoked(version=taken.name, when=taken.when, why=taken.why)

    async def _seen(self, state: AppState, person: Person) -> AppState | None:
        """What of an app someone may see; None: nothing."""
        if decides(person) or state.app.person == person.name:
            return state
        own = [one for one in state.versions if one.state is P.APPROVED or one.proposed_by == person.name]
        allowed = bool(own) and await self.refused(person, "app", state.app.name) is None
        mine = any(one.proposed_by == person.name for one in own)
        return replace(state, versions=own) if allowed or mine else None

    async def version_of(self, ref: str, person: Person) -> Version:
        """`summa@3`, or the one that `summa` means: of what waits for a decision the newest, else what is run."""
        name, number = read_ref(ref)
        state = await self.app(name, person)
        if number is None:
            return next((one for one in state.versions if one.state is P.PROPOSED), None) or _first(state)
        for one in state.versions:
            if one.number == number:
                return one
        raise NotFound(noun="version", name=ref, hint=f"`sublet app show {name}` lists them.")

    async def review(self, ref: str, person: Person, against: int | None = None) -> Review:
        """A version's files, and what is new in them since the last one that was approved (or since another)."""
        version = await self.version_of(ref, person)
        state = await self.app(version.app, person)
        self._may_read(version, person, state)
        base = _base(state, version, against)
        files = await self._files(version)
        old = await self._files(base) if base else ()
        told = manifest_diff(base.manifest, version.manifest) if base else ""
        return Review(version, files, base, await asyncio.to_thread(changes, old, files) if base else (), told)

    def _may_read(self, version: Version, person: Person, state: AppState) -> None:
        """Code is shown to those who decide, who brought it, and who may run it."""
        own = decides(person) or person.name in (version.proposed_by, state.app.person)
        if not own and version.state is not P.APPROVED:
            raise NotYours(noun="version")

    async def _files(self, version: Version) -> Sequence[TreeFile]:
        """The files of a version, out of its archive, if that is still what it was."""
        return await asyncio.to_thread(self._read, version)

    def _read(self, version: Version) -> Sequence[TreeFile]:
        archive = read_archive(self.archives, version.tree)
        if archive is None:
            why = "its code is no longer kept, or is not what was proposed"
            raise NotDecidable(version=version.name, state=version.state, wanted="read", why=why)
        return files_of(archive)

    async def check_upstream(self, ref: str, person: Person) -> Upstream:
        """Whether a version's branch has moved on since, or was rewritten; what is run stays the same."""
        version = await self.version_of(ref, person)
        async with self._reading:
            tip = await self.repositories.tip(version.repository, version.branch)
            if tip == version.commit:
                return Upstream(version, tip, "it is where it was")
            there = await self.repositories.has(version.repository, version.branch, version.commit)
        words = "it has moved on" if there else "it was rewritten: the commit that was reviewed is not in it any more"
        return Upstream(version, tip, words)

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


def _base(state: AppState, version: Version, against: int | None) -> Version | None:
    """What a version is compared with."""
    if against is not None:
        found = [one for one in state.versions if one.number == against]
        if not found:
            raise NotFound(noun="version", name=f"{version.app}@{against}", hint=HINT)
        return found[0]
    once = [one for one in state.versions if one.number < version.number and one.state in (P.APPROVED, P.REVOKED)]
    return once[0] if once else None


def _sweep(folder: Path, needed: set[str], before: float) -> list[str]:
    if not folder.is_dir():
        return []
    gone = [file for file in folder.glob("*.tar") if file.stem not in needed and file.stat().st_mtime < before]
    for file in gone:
        file.unlink(missing_ok=True)
    return [file.stem for file in gone]
