"""Templates: a person's details for leases, saved under names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sublet.annexes.model.annex import Details, Template, check_name
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.errors import NotFound
from sublet.people.model.person import Person
from sublet.store.store import Store


@dataclass
class Templates:
    """Saves, shows, lists and removes templates."""

    store: Store
    now: Clock
    authority: Authority

    async def save_template(self, name: str, details: Details, person: Person) -> Template:
        """Save details under a name, replacing an existing template."""
        self.authority.require_owner(person)
        template = Template(person.name, check_name(name, "template"), details, self.now())
        await self.store.write(lambda tx: tx.templates.save(template))
        return template

    async def template(self, name: str, person: Person) -> Template:
        """Return one of the person's templates, or raise NotFound."""
        template = await self.store.read(lambda tx: tx.templates.get(person.name, name))
        if template is None:
            raise NotFound(noun="template", name=name, hint="`sublet annex template list` lists yours.")
        return template

    async def templates(self, person: Person) -> Sequence[Template]:
        """List the person's templates, by name."""
        return await self.store.read(lambda tx: tx.templates.list(person.name))

    async def remove_template(self, name: str, person: Person) -> None:
        """Remove a template, or raise NotFound."""
        await self.template(name, person)
        await self.store.write(lambda tx: tx.templates.remove(person.name, name))
