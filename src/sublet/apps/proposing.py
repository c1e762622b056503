"""Proposals: a repository is fetched, its manifest and image are pinned, and all of it waits for a reviewer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from uuid import uuid4

from sublet.apps.catalogue import AppCatalogue, detail_of
from sublet.apps.manifests.reader import read_manifest
from sublet.apps.model.app import App, Version, VersionState, check_name, hash_manifest, name_of, notes_on
from sublet.apps.model.facilities import Facilities, find_had, find_lacking_node
from sublet.apps.model.manifest import AppImage, Manifest, to_json
from sublet.apps.model.needs import Need, add_found_places, describe_need, find_needs
from sublet.apps.model.repository import Snapshot, is_same_repository
from sublet.apps.model.tree import archive_of, hash_of
from sublet.apps.repositories import Repositories
from sublet.booking.model.request import Data
from sublet.booking.platforms.known import KnownPlatforms
from sublet.data.executables import Movers
from sublet.data.model.places import DeclaredPlace
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import AppFromElsewhere, AppTaken, BadManifest, DataNotThere, NotFound, TooManyOpen
from sublet.kernel.log import log
from sublet.kernel.mail import Mail
from sublet.kernel.settings import Settings
from sublet.kernel.throttle import Throttle
from sublet.movers.app import keep
from sublet.movers.port import SIMPLE, Pins, kinds_of
from sublet.movers.registries import read_reference
from sublet.people.model.person import Person
from sublet.platforms.port import Survey
from sublet.store.store import Store
from sublet.store.tx import Tx

MOST_OPEN = 20  # undecided proposals of one person
MOST_FINDINGS = 200
AT_ONCE = 2  # repositories that are fetched in parallel
NO_IMAGE = "error: there is no image: say in the manifest which one, or name a maintainer whose image is used."
UNKNOWN_DIGEST = "error: it is not known which image {image} is now: {why}"
P = VersionState


@dataclass(frozen=True, slots=True)
class Upstream:
    """The current state of a version's repository, which doesn't change what is run."""

    version: Version
    tip: str
    words: str


@dataclass
class Proposing:
    """Proposes apps, and checks their repositories for changes."""

    settings: Settings
    store: Store
    now: Clock
    platforms: KnownPlatforms
    movers: Movers
    throttle: Throttle
    mail: Mail
    catalogue: AppCatalogue
    has_strangers: bool  # whether sessions are for people other than this machine's owner

    @cached_property
    def repositories(self) -> Repositories:
        """The access to repositories."""
        return Repositories(self.settings.apps, self.settings.home / "fetching", self.settings.private_data)

    @cached_property
    def _reading(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(AT_ONCE)

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
        """Propose a repository as it is now; an identical proposal is the same version."""
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
            self.throttle.spend("proposals_per_person", person.name)
        async with self._reading:
            found = await self.repositories.fetch(repository, branch, commit)
        otherwise = name or name_of(found.repository.rpartition("/")[2].removesuffix(".git"))
        version = await self._version(person, found, name, otherwise, maintainer)
        archive = archive_of(found.files)
        await asyncio.to_thread(keep, self.catalogue.archives, archive)
        kept, new = await self.store.write(lambda tx: self._propose(tx, person, version, host, is_named=bool(name)))
        if new:
            log.info("app.proposed", app=kept.name, person=person.name, commit=kept.commit, tree=kept.tree)
            await self._tell_reviewers(kept)
        return kept

    async def _version(self, person: Person, found: Snapshot, name: str, otherwise: str, maintainer: str) -> Version:
        """Build the proposed version, with its image pinned if possible."""
        contents = {file.path: file.content for file in found.files}
        generic = self.settings.maintainers.get(maintainer)
        images = dict(self.settings.images)
        if generic:
            images[maintainer] = AppImage(location=generic.image, digest=generic.digest)
        kinds = (generic.kind,) if generic else ()
        reading = read_manifest(contents, images, name=otherwise, image=maintainer, kinds=kinds)
        if reading.manifest is None:
            raise BadManifest(problem="; ".join(map(str, reading.errors)))
        manifest = reading.manifest
        if generic and not manifest.image:
            manifest = replace(manifest, image=AppImage(maintainer, generic.image, generic.digest))
        if generic and manifest.image.name == maintainer and generic.hpc and not manifest.systems:
            manifest = replace(manifest, systems=generic.hpc)
        manifest, trouble = await self._settle_image(manifest)
        manifest = add_found_places(manifest, contents)
        plain = to_json(manifest)
        here = await self.facilities(self.platforms.by_name)
        needed = [*find_lacking_node(manifest, here), *find_needs(manifest, contents)]
        needs = [_tell_need(need, here) for need in needed]
        findings = [*trouble, *map(str, reading.findings), *needs, *notes_on(found.files)]
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

    async def facilities(self, names: Iterable[str]) -> Facilities:
        """Return what these platforms have of what apps need, by their last surveys."""
        names = set(names)
        declared = await self.store.read(lambda tx: tx.places.list())
        there = [(name, platform) for name in sorted(names) if (platform := self.platforms.by_name.get(name))]
        outs = {name: platform.lets_out(self.has_strangers) for name, platform in there}
        seen = {name: survey for name, _ in there if (survey := self.platforms.surveys.get(name))}
        schemes = {scheme for mover in self.movers.usual if SIMPLE in kinds_of(mover) for scheme in mover.schemes}
        return Facilities(
            images={name: image.location for name, image in self.settings.images.items()},
            mpi=tuple(name for name, platform in there if platform.runs_mpi),
            nodes={name: _sorts_of(survey) for name, survey in seen.items()},
            gpus={name: max((node.gpus for node in survey.nodes), default=0) for name, survey in seen.items()},
            online=tuple(name for name, out in outs.items() if out),
            offline=tuple(name for name, out in outs.items() if out is False),
            unknown=tuple(name for name, out in outs.items() if out is None),
            data=tuple(sorted(schemes - {"file"})),
            places=_sort_places([place for place in declared if place.platform in names]),
            largest=self.settings.largest_data if self.has_strangers else 0,
        )

    async def _settle_image(self, manifest: Manifest) -> tuple[Manifest, list[str]]:
        """Return the manifest with its image pinned, and the reasons if that isn't possible."""
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
            # The service's logins are for the operator's own images
            mover = self.movers.choose(data, reviewed=bool(image.name))
            pinned = await mover.pin(data) if isinstance(mover, Pins) else data
        except DataNotThere as error:
            return manifest, [UNKNOWN_DIGEST.format(image=image.location, why=error.message)]
        return manifest.pin_to(location.partition("@")[0], pinned.location.rpartition("@")[2]), []

    def _propose(self, tx: Tx, person: Person, version: Version, host: str, *, is_named: bool) -> tuple[Version, bool]:
        app, now = tx.apps.get(version.app), self.now()
        if app and app.person != person.name and not person.operator:
            raise AppTaken(name=app.name, owner=app.person)
        last = tx.apps.newest(version.app)
        if last and last.same_as(version) and last.state in (P.PROPOSED, P.APPROVED):
            return last, False
        if last and not is_same_repository(last.repository, version.repository):
            if not is_named:  # two projects may have the same name in their manifests
                raise AppFromElsewhere(name=version.app, repository=last.repository)
            moved = f"warning: it comes from another repository than {last.name}, which is from {last.repository}."
            version = replace(version, findings=(moved, *version.findings))
        if app is None:
            tx.apps.add(App(version.app, person.name, version.repository, now))
        numbered = replace(version, number=tx.apps.next_number(version.app))
        tx.apps.add_version(numbered)
        tx.audit.add(AuditEntry(now, person.name, "app.propose", "app", numbered.name, detail_of(numbered), host))
        return numbered, True

    async def _tell_reviewers(self, version: Version) -> None:
        reviewers = await self.store.read(lambda tx: tx.apps.reviewers())
        text = (
            f"{version.proposed_by} proposes {version.name}: {version.repository}, branch {version.branch}, "
            f"commit {version.commit}.\n\nLook at it there: {self.catalogue.app_link(version)}\n"
            f"or with: sublet app review {version.name}\n"
        )
        others = [reviewer for reviewer in reviewers if reviewer != version.proposed_by]
        await self.mail.send_each(others, f"{version.name} is proposed", text)

    async def check_upstream(self, ref: str, person: Person) -> Upstream:
        """Check whether a version's branch has new commits or was rewritten; what is run stays the same."""
        version = await self.catalogue.version_of(ref, person)
        async with self._reading:
            tip = await self.repositories.tip(version.repository, version.branch)
            if tip == version.commit:
                return Upstream(version, tip, "it is where it was")
            there = await self.repositories.has(version.repository, version.branch, version.commit)
        words = "it has moved on" if there else "it was rewritten: the commit that was reviewed is not in it any more"
        return Upstream(version, tip, words)


def _sort_places(declared: Iterable[DeclaredPlace]) -> dict[str, tuple[str, ...]]:
    """Return the platforms of each place, by the paths at which containers may see it."""
    found: dict[str, tuple[str, ...]] = {}
    for place in declared:
        for path in {place.target, f"/{place.name}"}:
            found[path] = (*found.get(path, ()), place.platform)
    return found


def _sorts_of(survey: Survey) -> tuple[tuple[int, int], ...]:
    """Return the distinct sizes of nodes."""
    return tuple(sorted({(node.cores, node.memory) for node in survey.nodes}))


def _tell_need(need: Need, here: Facilities) -> str:
    """Describe what an app needs, and whether it is available here."""
    had = find_had(need, here)
    return f"warning: it needs {describe_need(need)}; here {'that is ' if had.has else ''}{had.words}."
