"""Places: directories of systems that sessions share, declared by the service's operators and bound where jobs run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sublet.booking.model.offer import Reason
from sublet.booking.model.places import BoundPlace, PlaceWish
from sublet.booking.model.request import Request
from sublet.booking.model.session import Session
from sublet.data.model.places import (
    DeclaredPlace,
    PlaceKind,
    ScratchUse,
    admits_app,
    check_declared,
    check_link,
    check_target,
    describe_declaring,
    describe_missing,
    find_place,
    is_usable,
    scratch_name,
)
from sublet.data.model.roads import describe_bytes
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import BadRequest, NotFound, PlatformRefused, ScratchFull
from sublet.people.model.person import Person
from sublet.platforms.places import MeasuresPlaces
from sublet.platforms.port import Platform
from sublet.store.store import Store
from sublet.store.tx import Tx

NOUN = "place"
MOST = 1000
LIST = "`sublet place list` lists the places."


class PlacePlatforms(Protocol):
    """Finds platforms by name."""

    def get(self, name: str) -> Platform:
        """Return the platform of this name, or raise an error that lists the platforms."""
        ...


class PlaceRules(Protocol):
    """Decides who may use what."""

    async def find_refusal(self, person: Person, noun: str, name: str) -> Reason | None:
        """Return why a person may not use something, or None if they may."""
        ...


class Containers(Protocol):
    """Knows which kinds of executable run in a container."""

    def is_contained(self, kind: str) -> bool:
        """Whether executables of this kind see bound directories in a container."""
        ...


@dataclass
class SharedPlaces:
    """Declares places, and binds them for sessions."""

    store: Store
    now: Clock
    authority: Authority
    platforms: PlacePlatforms
    rules: PlaceRules
    containers: Containers

    async def add(self, person: Person, place: DeclaredPlace, host: str = "") -> DeclaredPlace:
        """Declare a place, replacing one of the same name."""
        self._require_right(person)
        platform = self.platforms.get(place.platform)
        if not platform.has_places:
            raise PlatformRefused(platform=platform.name, why=_explain_none(platform), hint="Name another platform.")
        new = replace(place, created=self.now(), by=person.name)
        if why := check_declared(new):
            raise BadRequest(detail=why, hint=describe_declaring(place.name or "NAME", place.platform))

        def add(tx: Tx) -> None:
            if len(tx.places.list()) >= MOST:
                raise BadRequest(detail=f"there are {MOST} places already", hint="Remove one: sublet place remove")
            tx.places.put(new)
            detail = {"path": new.path, "kind": new.kind.value, "writable": new.writable}
            tx.audit.add(AuditEntry(new.created, person.name, "place.add", NOUN, _label(new), detail, host))

        await self.store.write(add)
        return new

    async def remove(self, person: Person, platform: str, name: str, host: str = "") -> None:
        """Remove a place; its files stay, but scratch directories expire at once."""
        self._require_right(person)

        def remove(tx: Tx) -> bool:
            gone = tx.places.remove(platform, name)
            if gone:
                entry = AuditEntry(self.now(), person.name, "place.remove", NOUN, f"{platform}/{name}", {}, host)
                tx.audit.add(entry)
                tx.places.end_scratch(platform, name, self.now())
            return gone

        if not await self.store.write(remove):
            raise NotFound(noun=NOUN, name=f"{name} on {platform}", hint=LIST)

    def _require_right(self, person: Person) -> None:
        """Raise an error unless the person owns this personal service or operates this gateway."""
        if self.authority.has_owner:
            self.authority.require_owner(person)
        else:
            self.authority.require_operator(person)

    async def list(self, person: Person) -> list[DeclaredPlace]:
        """List the places that a person may use; an operator sees all."""
        declared = await self.store.read(lambda tx: tx.places.list())
        if person.guest:
            return []
        if person.operator or not declared:
            return declared
        refused = {name for name in {place.name for place in declared} if await self._is_refused(person, name)}
        return [place for place in declared if place.name not in refused]

    async def _is_refused(self, person: Person, name: str) -> bool:
        return await self.rules.find_refusal(person, NOUN, name) is not None

    async def find_refusals(
        self, person: Person, platforms: Sequence[Platform], request: Request
    ) -> Mapping[str, Reason]:
        """Return the platforms that can't provide the request's places to this person, and why."""
        if not any(wish.is_needed for wish in request.places):
            return {}
        declared = await self.store.read(lambda tx: tx.places.list())
        found = {}
        for platform in platforms:
            there = [place for place in declared if place.platform == platform.name]
            for wish in request.places:
                reason = await self._find_reason(person, platform, there, wish, request) if wish.is_needed else None
                if reason:
                    found[platform.name] = replace(reason, platform=platform.name)
                    break
        return found

    async def _find_reason(
        self, person: Person, platform: Platform, there: Sequence[DeclaredPlace], wish: PlaceWish, request: Request
    ) -> Reason | None:
        """Return why a platform can't provide this place to this person, or None if it can."""
        name = platform.name
        if not platform.has_places:
            return Reason("urn:not-supported", "places", f"{name}: {_explain_none(platform)}.", wish.name)
        if (place := find_place(there, wish)) is None:
            nearest = describe_declaring(wish.name, name)
            return Reason("urn:not-supported", "places", describe_missing(wish, name, there), wish.name, "", nearest)
        if person.guest:
            why = f"{name} is shared with you without its places."
            return Reason("urn:not-allowed", "places", why, wish.name)
        if not admits_app(place, _app_of(request)):
            why = f"The place {wish.name} of {name} is for these apps alone: {', '.join(place.apps)}."
            return Reason("urn:not-allowed", "places", why, wish.name)
        if reason := await self.rules.find_refusal(person, NOUN, place.name):
            return replace(reason, field="places")
        return self._check_path(place, wish, request)

    def _check_path(self, place: DeclaredPlace, wish: PlaceWish, request: Request) -> Reason | None:
        """Return why the place can't appear at the path that the request wants, or None if it can."""
        target = self._find_target(place, wish, request)
        contained = self._is_contained(request)
        why = check_target(target) if contained else check_link(target)
        taken = [volume.resource for volume in request.compute.volumes if volume.path.rstrip("/") == target.rstrip("/")]
        why = why or (f"{taken[0]} is there already" if taken else "")
        message = f"The place {wish.name} can't be at {target}: {why}."
        nearest = place.target if contained else f"{wish.name}, or another path below the working directory"
        return Reason("urn:invalid-value", "places", message, target, "", nearest) if why else None

    def _find_target(self, place: DeclaredPlace, wish: PlaceWish, request: Request) -> str:
        """Return where the program sees the place: at the requested or declared path, or in its working directory."""
        return wish.path or (place.target if self._is_contained(request) else place.name)

    def _is_contained(self, request: Request) -> bool:
        return bool(request.executable and self.containers.is_contained(request.executable.kind))

    async def bind(self, session: Session, platform: Platform, request: Request) -> tuple[BoundPlace, ...]:
        """Bind a session's places just before it runs, by the current rules.

        Raise PlatformRefused if a needed one is unavailable.
        """
        if not request.places:
            return ()
        person = Person(session.person, guest=platform.hosts(session.person))
        there = await self.store.read(lambda tx: tx.places.list(platform.name))
        bound = []
        for wish in request.places:
            reason = await self._find_reason(person, platform, there, wish, request)
            if reason and wish.is_needed:
                raise PlatformRefused(platform=platform.name, why=reason.message, hint=reason.nearest)
            place = find_place(there, wish)
            if place and not reason:
                bound.append(await self._open(session, platform, place, wish, request))
        return tuple(bound)

    async def _open(
        self, session: Session, platform: Platform, place: DeclaredPlace, wish: PlaceWish, request: Request
    ) -> BoundPlace:
        is_scratch = place.kind is PlaceKind.SCRATCH
        if is_scratch:
            until = self.now() + session.offer.duration + place.keep
            use = ScratchUse(platform.name, place.name, session.person, place.path, until)
            await self.store.write(lambda tx: _keep_longest(tx, use))
        name = scratch_name(place.name, session.person) if is_scratch else ""
        path = await platform.open_place(place.path, name)
        if is_scratch and place.quota:
            await _check_quota(platform, place, path)
        if not is_usable(path):
            why = f"the place {place.name} is at {path}, which container tools can't be given"
            raise PlatformRefused(platform=platform.name, why=why)
        target = self._find_target(place, wish, request)
        return BoundPlace(place.name, path, target, wish.read_only or not place.writable)


async def _check_quota(platform: Platform, place: DeclaredPlace, path: str) -> None:
    """Raise ScratchFull if a person's scratch has reached its quota, before a session adds to it."""
    size = await platform.measure_place(path) if isinstance(platform, MeasuresPlaces) else 0
    if size >= place.quota:
        sizes = {"size": describe_bytes(size), "quota": describe_bytes(place.quota)}
        raise ScratchFull(place=place.name, platform=platform.name, **sizes)


def _keep_longest(tx: Tx, use: ScratchUse) -> None:
    """Record a use of scratch, which may extend its retention but never shortens it."""
    known = [kept for kept in tx.places.list_scratch(use.person) if replace(kept, until=use.until) == use]
    tx.places.keep(max([use, *known], key=lambda kept: kept.until))


def _label(place: DeclaredPlace) -> str:
    return f"{place.platform}/{place.name}"


def _app_of(request: Request) -> str:
    executable = request.executable
    return str(executable.fields.get("app") or "") if executable and executable.kind == "app" else ""


def _explain_none(platform: Platform) -> str:
    return f"sessions on a platform of kind {platform.kind} share no directory that could be a place"
