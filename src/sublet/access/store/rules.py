"""Access rules. They are read for each decision, so that a change takes effect at once."""

from __future__ import annotations

from functools import lru_cache

from pydantic import TypeAdapter
from sqlalchemy import delete, insert, select

from sublet.access.model.access import AccessRule, Limits
from sublet.access.store.tables import rules
from sublet.apps.store.tables import versions
from sublet.booking.model.timeline import micros, moment
from sublet.kernel.db.sql import Row, Sql, bind, dump, micros_or_none, moment_or_none, plain

R = rules.c
LIMITS = TypeAdapter(Limits)
RULE = select(R.id, R.effect, R.who, R.noun, R.name, R.limits, R.created, R.expires, R.by, R.note)
ALL = RULE.order_by(R.created, R.id)
OF_NOUN = ALL.where(R.noun == bind("of_noun"))
GET = RULE.where(R.id == bind("rule_id"))
BY_PREFIX = ALL.where(R.id >= bind("low"), R.id < bind("high")).limit(6)
ADD = insert(rules)
REMOVE = delete(rules).where(R.id == bind("rule_id"))
APPS = select(versions.c.app).where(versions.c.state == "approved").distinct().order_by(versions.c.app)


class Rules:
    """The access rules, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Work in this transaction."""
        self._sql = sql

    def add(self, rule: AccessRule) -> None:
        """Add a rule."""
        self._sql.change(
            ADD,
            {
                "id": rule.id,
                "effect": rule.effect,
                "who": plain(rule.who),
                "noun": rule.noun,
                "name": plain(rule.name),
                "limits": dump(LIMITS, rule.limits),
                "created": micros(rule.created),
                "expires": micros_or_none(rule.expires),
                "by": plain(rule.by),
                "note": plain(rule.note),
            },
        )

    def find(self, name: str) -> list[AccessRule]:
        """Return the rule with this id, or some of those whose ids begin with it."""
        if row := self._sql.row(GET, {"rule_id": plain(name)}):
            return [_rule(row)]
        low = name.lower()
        if not low or not set(low) <= set("0123456789abcdef-"):
            return []
        return [_rule(row) for row in self._sql.rows(BY_PREFIX, {"low": low, "high": low + "g"})]

    def list(self, noun: str = "") -> list[AccessRule]:
        """List all rules, or those about one noun; oldest first."""
        rows = self._sql.recall(OF_NOUN, {"of_noun": noun}) if noun else self._sql.recall(ALL, {})
        return [_rule(row) for row in rows]

    def remove(self, id: str) -> bool:
        """Remove a rule; return whether there was one."""
        return self._sql.change(REMOVE, {"rule_id": id}) > 0

    def apps(self) -> tuple[str, ...]:
        """Return the names of the apps that can be run."""
        return tuple(row[0] for row in self._sql.rows(APPS, {}))


def _rule(row: Row) -> AccessRule:
    id, effect, who, noun, name, limits, created, expires, by, note = row
    return AccessRule(id, effect, who, noun, name, moment(created), _limits(limits), moment_or_none(expires), by, note)


@lru_cache(maxsize=256)
def _limits(text: str) -> Limits:
    """Parse limits; cached, as they are immutable."""
    return LIMITS.validate_json(text)
