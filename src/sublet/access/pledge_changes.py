"""Pledges that operators add, change and remove while the service runs; those in the settings are fixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sublet.booking.model.pledge import OPEN
from sublet.booking.model.pledged import AddedPledge
from sublet.booking.platforms.added_pledges import AddedPledges
from sublet.booking.platforms.known import KnownPlatforms
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import BadPledge, NotFound
from sublet.people.model.person import Person
from sublet.platforms.pledge_settings import PledgeSettings
from sublet.platforms.port import PledgeName
from sublet.store.store import Store
from sublet.store.tx import Tx

NAME: TypeAdapter[str] = TypeAdapter(PledgeName)
FIELDS = tuple(PledgeSettings.model_fields)
OF_SETTINGS = "it is in the settings of {}"
IN_SETTINGS = "Change it in sublet.toml, and restart the service."
HINT = "`sublet pledge list` lists them."


@dataclass
class PledgeChanges:
    """Changes pledges; existing bookings stay."""

    store: Store
    now: Clock
    platforms: KnownPlatforms
    authority: Authority
    added: AddedPledges

    async def add(
        self, person: Person, platform: str, name: str, amounts: Mapping[str, Any], host: str = ""
    ) -> AddedPledge:
        """Add a pledge to a platform; people need a rule to use it."""
        self._require_keeper(person)
        self._check_name(platform, name)
        pledge = AddedPledge(platform, name, _check(name, amounts), person.name)

        def work(tx: Tx) -> None:
            if any(other.platform == platform for other in tx.pledges.list_by_name(name)):
                raise BadPledge(name=name, why=f"{platform} has one of that name", hint=f"sublet pledge edit {name}")
            self._record(tx, "pledge.add", pledge, host)

        await self.store.write(work)
        await self.added.take_up()
        return pledge

    async def edit(
        self, person: Person, platform: str, name: str, changes: Mapping[str, Any], host: str = ""
    ) -> AddedPledge:
        """Change the given fields of a pledge; an amount of 0 or an empty text removes that field."""
        self._require_keeper(person)

        def work(tx: Tx) -> AddedPledge:
            old = self._find(tx, platform, name)
            pledge = replace(old, settings=_check(name, {**old.settings, **changes}), by=person.name)
            self._record(tx, "pledge.edit", pledge, host)
            return pledge

        pledge = await self.store.write(work)
        await self.added.take_up()
        return pledge

    async def remove(self, person: Person, platform: str, name: str, host: str = "") -> AddedPledge:
        """Remove a pledge: its part becomes open, and existing bookings stay."""
        self._require_keeper(person)

        def work(tx: Tx) -> AddedPledge:
            pledge = self._find(tx, platform, name)
            tx.pledges.remove(pledge.platform, name)
            tx.audit.add(self._entry("pledge.remove", replace(pledge, by=person.name), host))
            return pledge

        pledge = await self.store.write(work)
        await self.added.take_up()
        return pledge

    def _require_keeper(self, person: Person) -> None:
        if self.authority.has_owner:
            self.authority.require_owner(person)
        else:
            self.authority.require_operator(person)

    def _check_name(self, platform: str, name: str) -> None:
        """Raise BadPledge if the name can't be used on this platform."""
        there = self.platforms.get(platform)
        if there.terms == "remote":
            raise BadPledge(name=name, why=f"{platform} is another broker, whose platforms have no pledges here")
        if name in there.pledges:
            raise BadPledge(name=name, why=OF_SETTINGS.format(platform), hint=IN_SETTINGS)
        if name == OPEN:
            raise BadPledge(name=name, why="this is the name of what is not pledged")
        try:
            NAME.validate_python(name)
        except ValidationError:
            raise BadPledge(name=name[:40], why="a name has small letters, digits and `-`, 31 at most") from None

    def _find(self, tx: Tx, platform: str, name: str) -> AddedPledge:
        """Return the pledge that is meant; `platform` may be empty if only one has a pledge of this name."""
        called = [pledge for pledge in tx.pledges.list_by_name(name) if platform in ("", pledge.platform)]
        if len(called) > 1:
            there = ", ".join(pledge.platform for pledge in called)
            raise BadPledge(name=name, why=f"several platforms have one of that name: {there}", hint="Add --platform.")
        if called:
            return called[0]
        fixed = [each for each, there in self.platforms.by_name.items() if name in there.pledges]
        if fixed and platform in ("", *fixed):
            raise BadPledge(name=name, why=OF_SETTINGS.format(platform or fixed[0]), hint=IN_SETTINGS)
        raise NotFound(noun="pledge", name=name, hint=HINT)

    def _record(self, tx: Tx, act: str, pledge: AddedPledge, host: str) -> None:
        tx.pledges.put(pledge, self.now())
        tx.audit.add(self._entry(act, pledge, host))

    def _entry(self, act: str, pledge: AddedPledge, host: str) -> AuditEntry:
        detail = {"platform": pledge.platform, **{key: str(value) for key, value in pledge.settings.items()}}
        return AuditEntry(self.now(), pledge.by, act, "pledge", pledge.name, detail, host)


def _check(name: str, amounts: Mapping[str, Any]) -> dict[str, Any]:
    """Validate a pledge's fields, and return those that aren't empty."""
    given = {field: amounts[field] for field in FIELDS if amounts.get(field)}
    try:
        PledgeSettings.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise BadPledge(name=name, why=f"{field}: {message}" if field else message) from None
    return given
