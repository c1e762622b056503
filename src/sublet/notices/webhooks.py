"""Delivers events to hooks: each event once to each hook, across all processes, with retries after failures."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sublet.booking.model.events import Event
from sublet.booking.model.session import Session
from sublet.booking.recorded_clock import is_clock_doubted
from sublet.kernel.calling import Answered, call
from sublet.kernel.clock import Clock
from sublet.kernel.errors import SubletError
from sublet.kernel.faults import point
from sublet.kernel.log import log
from sublet.kernel.mail import Mail
from sublet.kernel.settings import Settings
from sublet.kernel.vault import Vault
from sublet.notices.messages import DELIVERY, SIGNATURE, encode, letter, message, signature
from sublet.notices.model.hooks import MAILTO, TRIES, Delivery, Hook
from sublet.people.model.mailboxes import fold_address
from sublet.people.model.person import Person
from sublet.people.standing import Standing
from sublet.store.store import Store
from sublet.store.tx import Tx

AT_ONCE = 16  # concurrent calls
PAGE = 1000  # events that are processed at a time
KEPT = timedelta(days=7)  # how long finished deliveries and expired hooks are kept
HOURLY = timedelta(hours=1)


@dataclass
class WebhookDelivery:
    """The caretaker of the loop that delivers events to hooks."""

    settings: Settings
    store: Store
    now: Clock
    vault: Vault
    mail: Mail
    standing: Standing
    is_private_usual: bool  # whether hooks may be on private networks by default

    _heard: int = -1  # the newest event that was processed
    _telling: asyncio.Task[None] | None = None
    _hooks_forgot: datetime | None = None

    async def look_after(self, now: datetime) -> None:
        """Start a background delivery if there are new events, or deliveries to retry."""
        if self._telling and not self._telling.done():
            return
        newest, due = await self.store.read(lambda tx: (tx.events.newest(), tx.hooks.next_due()))
        if newest != self._heard or (due and due <= now):
            self._telling = asyncio.create_task(self._tell_hooks(newest), name="hooks")

    async def _tell_hooks(self, newest: int) -> None:
        try:
            now = self.now()
            if self._hooks_forgot is None or abs(now - self._hooks_forgot) >= HOURLY:
                self._hooks_forgot = now
                await self.store.write(lambda tx: _forget_old(tx, now))
            if newest != self._heard:
                while await self._spread():
                    point("hook.spread")
                self._heard = newest
            while some := await self._claim():
                point("hook.claimed")
                await asyncio.gather(*(self._deliver(delivery) for delivery in some))
        except SubletError as error:
            log.warning("hooks.failed", why=str(error))

    async def _spread(self) -> bool:
        """Add the deliveries of new events for each hook; return whether there may be more."""
        now = self.now()
        if not (hooks := await self.store.read(lambda tx: tx.hooks.news(now))):
            return False
        return await self.store.write(lambda tx: max([spread(tx, hook, now) for hook in hooks]))

    async def _claim(self) -> Sequence[Delivery]:
        now = self.now()
        due = await self.store.read(lambda tx: tx.hooks.next_due())
        return await self.store.write(lambda tx: tx.hooks.claim(now, AT_ONCE)) if due and due <= now else ()

    async def _deliver(self, delivery: Delivery) -> None:
        hook, event, session = await self.store.read(lambda tx: _facts(tx, delivery))
        if hook is None:
            return
        why = await self._untold(hook, event)
        if event is None or why:
            await self.store.write(lambda tx: tx.hooks.record_answer(delivery, why, over=True))
            return
        answer = await self.tell_hook(hook, delivery.key, event, session)
        point("hook.sent")
        await self.store.write(lambda tx: _note(tx, hook, delivery, answer))
        if not answer.well:
            log.warning("hook.refused", hook=hook.id, delivery=delivery.key, tries=delivery.tries, why=answer.words)

    async def _untold(self, hook: Hook, event: Event | None) -> str:
        """Return why a delivery is dropped; empty if it should be made."""
        if event is None:
            return "the session was forgotten"
        if hook.expires <= self.now():
            return "the hook has expired"
        owner = Person(hook.person)
        if await self.standing.as_now(owner) is None:
            return "its owner may not come in"
        address = hook.address.removeprefix(MAILTO)
        plain = fold_address(address, self.settings.signing.subaddresses)
        if hook.by_mail and not {address, plain} & await self.own_addresses(owner):
            return f"{address} is no longer its owner's"
        return ""

    async def tell_hook(self, hook: Hook, key: str, event: Event, session: Session | None) -> Answered:
        """Make one try, by mail or by a signed call, and return its outcome."""
        try:
            if hook.by_mail:
                await self.mail.send(hook.address.removeprefix(MAILTO), *letter(hook, event, session))
                return Answered(True, "sent")
            body = encode(message(hook, key, event, session))
            secret = self.vault.open(f"hook:{hook.id}", hook.secret)
        except SubletError as error:
            return Answered(False, error.message)
        headers = {
            "content-type": "application/json",
            "user-agent": "sublet",
            DELIVERY: key,
            SIGNATURE: signature(secret, self.now(), body),
        }
        patience = self.settings.hooks.patience
        return await call(hook.address, headers, body, private=self.calls_private, patience=patience)

    async def own_addresses(self, person: Person) -> frozenset[str]:
        """Return a person's confirmed e-mail addresses: those by which they can sign in."""
        identities = await self.store.read(lambda tx: tx.people.identities(person.name))
        return frozenset(identity.value for identity in identities if identity.kind == "email")

    @property
    def calls_private(self) -> bool:
        """Whether hooks may be on private networks."""
        setting = self.settings.hooks.private
        return self.is_private_usual if setting is None else setting


def spread(tx: Tx, hook: Hook, now: datetime) -> bool:
    """Add the deliveries of the hook's next events; return whether this process handled any events."""
    of = {"session": hook.session} if hook.session else {"person": hook.person}
    events = tx.events.after(hook.after, limit=PAGE, **of)
    wanted = [event.id for event in events if event.kind in hook.kinds]
    return bool(events) and tx.hooks.spread(hook, events[-1].id, wanted, now)


def _facts(tx: Tx, delivery: Delivery) -> tuple[Hook | None, Event | None, Session | None]:
    event = tx.events.get(delivery.event)
    return tx.hooks.get(delivery.hook), event, tx.sessions.get(event.session) if event else None


def _note(tx: Tx, hook: Hook, delivery: Delivery, answer: Answered) -> None:
    last = delivery.tries >= TRIES or answer.gone
    tx.hooks.record_answer(delivery, answer.words, over=answer.well or last)
    if last and not answer.well:
        reason = "it wants no more" if answer.gone else f"{delivery.tries} tries failed, the last so"
        tx.hooks.give_up(hook.id, f"{reason}: {answer.words}")


def _forget_old(tx: Tx, now: datetime) -> None:
    if not is_clock_doubted(tx, now):
        tx.hooks.forget(now - KEPT)
