"""Pins requests for apps to an approved version, which is checked again before its code is started."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime

from sublet.access.quotas import Quotas
from sublet.apps.catalogue import AppCatalogue, read_archive
from sublet.apps.model.app import Version, VersionState, hash_manifest, read_ref
from sublet.apps.model.manifest import Manifest, from_json
from sublet.apps.model.request import fit_request
from sublet.apps.reviewing import describe_revocation
from sublet.apps.trials import is_trial
from sublet.booking.model.offer import Offer, Reason
from sublet.booking.model.request import Executable, Request
from sublet.booking.model.session import Session
from sublet.booking.platforms.known import KnownPlatforms
from sublet.kernel.errors import AppRefused, AppRevoked, BadName, SubletError
from sublet.kernel.settings import Settings
from sublet.kinds.app import name_of
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

KIND = "app"
CHANGED = "its code on this machine is not what was approved"


@dataclass
class PinnedApps:
    """Resolves and checks requests for apps."""

    settings: Settings
    store: Store
    platforms: KnownPlatforms
    quotas: Quotas
    catalogue: AppCatalogue
    needs_review: bool  # whether only reviewed code runs

    async def resolve(self, person: Person, request: Request) -> Request | Reason | None:
        """Return a request for an app, pinned to the version that it means; None if it isn't for an app."""
        executable = request.executable
        if executable is None or executable.kind != KIND or is_trial(name_of(executable)):
            return None
        approved = await self._find_approved(person, executable)
        if isinstance(approved, Reason):
            return approved
        if reason := await self.quotas.find_refusal(person, KIND, approved.app):
            return reason
        fields = {**executable.fields, "app": approved.app, "pinned": approved.pinned}
        named = replace(executable, name=executable.name or approved.app, fields=fields)
        return fit_request(replace(request, executable=named), approved.as_manifest())

    async def _find_approved(self, person: Person, executable: Executable) -> Version | Reason:
        """Return the approved version that an executable names: by number, or else the newest."""
        name_given, wanted = name_of(executable), executable.fields.get("version")
        try:
            name, number = read_ref(name_given)
        except BadName as error:
            return Reason("urn:invalid-value", "executable.app", error.message, name_given, nearest=error.advice)
        if wanted not in (None, ""):
            if not str(wanted).isdecimal() or len(str(wanted)) > 9:
                return Reason("urn:invalid-value", "executable.version", "A version is a number.", str(wanted))
            number = int(str(wanted))
        state = await self.catalogue.app_state(name)
        approved = [version for version in state.versions if version.state is VersionState.APPROVED] if state else []
        for each in approved:
            if number in (None, each.number):
                return each
        return _no_version(name, number, await self.catalogue.find_revocation(state, person, number), approved)

    def find_bar(self, platform: str, executable: Executable) -> Reason | None:
        """Return why this may not run there: accounts only run apps, and apps only run on systems that they name."""
        if executable.kind == KIND:
            manifest = _manifest(executable)
            systems = manifest.systems if manifest else ()
            if systems and platform not in systems and self.needs_review:
                known = ", ".join(systems)
                message = f"{name_of(executable)} runs on {known}, not on {platform}."
                return Reason("urn:not-supported", "platform", message, platform, known, systems[0], platform)
            return None
        others = self.settings.apps.others.get(platform, ())
        if not self.needs_review or self.platforms.noun_of(platform) != "account" or executable.kind in others:
            return None
        message = f"Under the account {platform} only apps that were reviewed can be run."
        nearest = "an app: sublet app list; or propose yours: sublet app propose REPOSITORY"
        return Reason("urn:not-allowed", "executable.kind", message, executable.kind, KIND, nearest, platform)

    def admit(self, tx: Tx, session: Session, now: datetime) -> None:
        """Raise AppRefused unless the session's version is still approved."""
        if session.app and self.needs_review:
            version = tx.apps.version(session.app)
            if version is None or version.state is not VersionState.APPROVED:
                raise AppRefused(version=version.name if version else "It", why=_why(version))

    def admit_longer(self, tx: Tx, session: Session, offer: Offer, now: datetime) -> None:
        """Do nothing: an extension needs no other approval."""

    async def note_refusal(self, act: str, person: Person, error: SubletError, **about: str) -> None:
        """Do nothing: the access rules record refusals, including those of apps."""

    async def find_objection(self, session: Session, request: Request) -> str:
        """Return why a session's code may not be started after all; empty if it may."""
        executable = request.executable
        if executable is None or executable.kind != KIND or not self.needs_review:
            return ""
        version = await self.store.read(lambda tx: tx.apps.version(session.app))
        if version is None or version.state is not VersionState.APPROVED:
            return _why(version)
        altered = hash_manifest(version.manifest) != version.manifest_hash
        if altered or executable.fields.get("pinned") != version.pinned or not version.digest:
            return "what it was to run is not what was approved."
        code = await asyncio.to_thread(read_archive, self.catalogue.archives, version.tree)
        return "" if code is not None else f"{version.name}: {CHANGED}."

    async def describe_code(self, session: Session) -> str:
        """Return a notice about a running session's app, if it was revoked; otherwise an empty string."""
        if not session.app or not self.needs_review:
            return ""
        version = await self.store.read(lambda tx: tx.apps.version(session.app))
        revoked = version is not None and version.state is VersionState.REVOKED
        return describe_revocation(version.name, version.why) if version and revoked else ""


def _manifest(executable: Executable) -> Manifest | None:
    pinned = executable.fields.get("pinned")
    return from_json(pinned["manifest"]) if pinned else None


def _why(version: Version | None) -> str:
    if version is None:
        return "its version is not known here any more."
    return f"it was {version.state}{f': {version.why}' if version.why else ''}."


def _no_version(name: str, number: int | None, gone: AppRevoked | None, approved: list[Version]) -> Reason:
    """Return the reason why there is nothing to run by this name and number."""
    there = ", ".join(f"{name}@{one.number}" for one in approved)
    if not approved:
        told = gone.message if gone else f"There is no app {name[:80]} that can be run here."
        kind = "urn:not-allowed" if gone else "urn:unknown-app"
        return Reason(kind, "executable.app", told, name[:80], nearest="sublet app list")
    told = f"{gone.message} These can be run: {there}." if gone else f"{name}@{number} can't be run; {there} can be."
    return Reason("urn:not-allowed", "executable.version", told, str(number), there, there.split(", ")[0])
