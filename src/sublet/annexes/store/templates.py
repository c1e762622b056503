"""Templates in the database: a person's details for leases, under names."""

from __future__ import annotations

from sqlalchemy import delete, insert, select, update

from sublet.annexes.model.annex import Template
from sublet.annexes.store.leases import DETAILS
from sublet.annexes.store.tables import templates
from sublet.booking.model.timeline import micros, moment
from sublet.kernel.db.sql import Row, Sql, bind, dump, plain

T = templates.c
COLUMNS = (T.person, T.name, T.details, T.changed)
ADD = insert(templates)
ONE = (T.person == bind("of_person"), T.name == bind("of_name"))
GET = select(*COLUMNS).where(*ONE)
LIST = select(*COLUMNS).where(T.person == bind("of_person")).order_by(T.name)
SET = update(templates).where(*ONE).values(details=bind("d"), changed=bind("c"))
REMOVE = delete(templates).where(*ONE)


class TemplateStore:
    """The templates, in one transaction."""

    def __init__(self, sql: Sql) -> None:
        """Use this transaction."""
        self._sql = sql

    def save(self, template: Template) -> None:
        """Save a template, replacing one of the same name."""
        person, details, changed = plain(template.person), dump(DETAILS, template.details), micros(template.changed)
        named = {"of_person": person, "of_name": template.name}
        if not self._sql.change(SET, {**named, "d": details, "c": changed}):
            self._sql.change(ADD, {"person": person, "name": template.name, "details": details, "changed": changed})

    def get(self, person: str, name: str) -> Template | None:
        """Return a template by name."""
        return _template(self._sql.row(GET, {"of_person": plain(person), "of_name": plain(name)}))

    def list(self, person: str) -> list[Template]:
        """List a person's templates, by name."""
        return [template for template in map(_template, self._sql.rows(LIST, {"of_person": plain(person)})) if template]

    def remove(self, person: str, name: str) -> bool:
        """Delete a template; return whether it existed."""
        return self._sql.change(REMOVE, {"of_person": plain(person), "of_name": plain(name)}) > 0


def _template(row: Row | None) -> Template | None:
    return None if row is None else Template(row[0], row[1], DETAILS.validate_json(row[2]), moment(row[3]))
