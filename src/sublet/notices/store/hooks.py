"""The SQL of hooks and of their deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import and_, delete, exists, func, insert, null, or_, select, update

from sublet.booking.model.timeline import micros, moment
from sublet.booking.store.tables import events
from sublet.kernel.db.sql import Row, Sql, bind, micros_or_none, moment_or_none, plain
from sublet.notices.model.hooks import Delivery, Hook, next_try
from sublet.notices.store.tables import deliveries, hooks

H, D, E = hooks.c, deliveries.c, events.c
HOOK = select(H.id, H.person, H.session, H.address, H.secret, H.events, H.created, H.expires, H.after, H.trouble)
DELIVERY = select(D.id, D.hook, D.event, D.tries, D.due, D.tried, D.answer)
ADD = insert(hooks)
GET = HOOK.where(H.id == bind("hook_id"))
LIST = HOOK.where(H.person == bind("of_person")).order_by(H.created, H.id)
NEWS = HOOK.where(
    H.trouble == "",
    H.expires > bind("now"),
    exists().where(
        E.id > H.after, or_(and_(H.session == "", E.person == H.person), and_(H.session != "", E.session == H.session))
    ),
)
REMOVE = delete(hooks).where(H.id == bind("hook_id"))
FORGET = delete(deliveries).where(D.hook == bind("of_hook"))
MOVE_ON = update(hooks).where(H.id == bind("hook_id"), H.after == bind("old_after")).values(after=bind("new_after"))
TROUBLE = update(hooks).where(H.id == bind("hook_id")).values(trouble=bind("words"))
SECRETS = select(H.id, H.secret).where(H.secret != "")
SEAL = update(hooks).where(H.id == bind("hook_id"), H.secret == bind("old")).values(secret=bind("new"))
REVIVE = update(hooks).where(H.id == bind("hook_id")).values(trouble="", after=bind("new_after"))
TELL = insert(deliveries).values({name: bind(name) for name in ("hook", "event", "due", "tries", "tried", "answer")})
DUE = DELIVERY.where(D.due <= bind("now")).order_by(D.due, D.id).limit(bind("most"))
NEXT = select(func.min(D.due)).where(D.due.is_not(None))
CLAIM = (
    update(deliveries)
    .where(D.id == bind("delivery_id"), D.due == bind("old_due"))
    .values(due=bind("new_due"), tries=bind("new_tries"), tried=bind("now"))
)
ANSWER = update(deliveries).where(D.id == bind("delivery_id")).values(answer=bind("words"))
OVER = update(deliveries).where(D.id == bind("delivery_id")).values(answer=bind("words"), due=null())
END_ALL = update(deliveries).where(D.hook == bind("of_hook"), D.due.is_not(None)).values(due=null())
LAST = DELIVERY.where(D.hook == bind("of_hook")).order_by(D.id.desc()).limit(bind("most"))
LAPSED = select(H.id).where(H.expires <= bind("now"))
OLD = delete(deliveries).where(D.due.is_(None), D.tried <= bind("now"))


class HookStore:
    """Hooks and deliveries, as one transaction reads and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Work in the transaction of `sql`."""
        self._sql = sql

    def add(self, hook: Hook) -> None:
        """Insert a hook."""
        self._sql.change(
            ADD,
            {
                "id": hook.id,
                "person": plain(hook.person),
                "session": hook.session,
                "address": plain(hook.address),
                "secret": hook.secret,
                "events": " ".join(hook.events),
                "created": micros(hook.created),
                "expires": micros(hook.expires),
                "after": hook.after,
                "trouble": plain(hook.trouble),
            },
        )

    def get(self, id: str) -> Hook | None:
        """Return a hook by its id, or None."""
        row = self._sql.row(GET, {"hook_id": plain(id)})
        return None if row is None else _hook(row)

    def of(self, person: str) -> list[Hook]:
        """Return a person's hooks, oldest first."""
        return [_hook(row) for row in self._sql.rows(LIST, {"of_person": plain(person)})]

    def remove(self, id: str) -> None:
        """Remove a hook and all its deliveries."""
        self._sql.change(FORGET, {"of_hook": id})
        self._sql.change(REMOVE, {"hook_id": id})

    def news(self, now: datetime) -> list[Hook]:
        """Return the active hooks that have events to process."""
        return [_hook(row) for row in self._sql.rows(NEWS, {"now": micros(now)})]

    def spread(self, hook: Hook, after: int, events: Sequence[int], now: datetime) -> bool:
        """Add deliveries of these events, and note that the hook's events up to `after` were processed.

        Return False, without any change, if another process did that.
        """
        if not self._sql.change(MOVE_ON, {"hook_id": hook.id, "old_after": hook.after, "new_after": after}):
            return False
        due = {"hook": hook.id, "due": micros(now), "tries": 0, "tried": None, "answer": ""}
        self._sql.change_many(TELL, [{**due, "event": event} for event in events])
        return True

    def next_due(self) -> datetime | None:
        """Return the time of the next try; None if there is none."""
        row = self._sql.row(NEXT, {})
        return moment_or_none(row[0]) if row else None

    def claim(self, now: datetime, limit: int) -> list[Delivery]:
        """Claim due deliveries for this process; those without a recorded outcome are retried after the backoff."""
        taken = []
        for row in self._sql.rows(DUE, {"now": micros(now), "most": limit}):
            old = _delivery(row)
            new = replace(old, tries=old.tries + 1, due=next_try(old.tries + 1, now), tried=now)
            params = {
                "delivery_id": old.id,
                "old_due": micros_or_none(old.due),
                "new_due": micros_or_none(new.due),
                "new_tries": new.tries,
                "now": micros(now),
            }
            if self._sql.change(CLAIM, params):
                taken.append(new)
        return taken

    def record_answer(self, delivery: Delivery, words: str, *, over: bool) -> None:
        """Record the outcome of a try, and whether it was the last."""
        self._sql.change(OVER if over else ANSWER, {"delivery_id": delivery.id, "words": plain(words)})

    def give_up(self, id: str, trouble: str) -> None:
        """Deactivate a hook, and record why."""
        self._sql.change(END_ALL, {"of_hook": id})
        self._sql.change(TROUBLE, {"hook_id": id, "words": plain(trouble)})

    def secrets(self) -> dict[str, str]:
        """Return all encrypted secrets, by hook."""
        return dict(self._sql.rows(SECRETS, {}))

    def seal(self, id: str, old: str, new: str) -> bool:
        """Replace an encrypted secret, unless it changed meanwhile; return whether it was replaced."""
        return self._sql.change(SEAL, {"hook_id": id, "old": old, "new": new}) > 0

    def revive(self, id: str, after: int) -> None:
        """Activate a hook again, for events from now on."""
        self._sql.change(REVIVE, {"hook_id": id, "new_after": after})

    def last(self, id: str, limit: int = 10) -> list[Delivery]:
        """Return a hook's last deliveries, newest first."""
        return [_delivery(row) for row in self._sql.rows(LAST, {"of_hook": id, "most": limit})]

    def forget(self, before: datetime) -> None:
        """Remove hooks that expired before then, and deliveries that finished before then."""
        for (id,) in self._sql.rows(LAPSED, {"now": micros(before)}):
            self.remove(id)
        self._sql.change(OLD, {"now": micros(before)})


def _hook(row: Row) -> Hook:
    id, person, session, address, secret, words, created, expires, after, trouble = row
    return Hook(
        id,
        person,
        session,
        address,
        secret,
        tuple(words.split()),
        moment(created),
        moment(expires),
        after,
        trouble,
    )


def _delivery(row: Row) -> Delivery:
    id, hook, event, tries, due, tried, answer = row
    return Delivery(id, hook, event, tries, moment_or_none(due), moment_or_none(tried), answer)
