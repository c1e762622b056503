"""The use cases of notifications, by webhook or by mail."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import uuid4

from sublet.booking.model.events import Event, EventKind
from sublet.booking.sessions import Sessions
from sublet.booking.signals import Signals
from sublet.kernel.calling import wrong_with
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import BadHook, BadRequest, NotFound, NotTold, TooManyHooks
from sublet.kernel.settings import Settings
from sublet.kernel.short_ids import pick_one, require_length
from sublet.kernel.throttle import Throttle
from sublet.kernel.vault import Vault
from sublet.notices.model.hooks import MAILTO, Delivery, Hook, words_of
from sublet.notices.webhooks import WebhookDelivery
from sublet.people.model.mailboxes import fold_address
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx


@dataclass
class Hooks:
    """Adds, lists, tests and removes hooks."""

    settings: Settings
    store: Store
    now: Clock
    signals: Signals
    vault: Vault
    throttle: Throttle
    sessions: Sessions
    telling: WebhookDelivery

    async def reseal(self) -> dict[str, int]:
        """Encrypt the signing secrets again with the newest master key; return how many were changed."""
        old = await self.store.read(lambda tx: tx.hooks.secrets())
        new = {id: await asyncio.to_thread(self.vault.reseal, f"hook:{id}", sealed) for id, sealed in old.items()}
        return {"hook": await self.store.write(lambda tx: sum(tx.hooks.seal(id, old[id], new[id]) for id in new))}

    async def add_hook(
        self,
        person: Person,
        address: str,
        *,
        session: str = "",
        events: Sequence[str] = (),
        lasts: timedelta | None = None,
        host: str = "",
    ) -> tuple[Hook, str]:
        """Add a hook; return it, and its signing secret, which can't be read again (mail has none)."""
        of = (await self.sessions.get(session, person)).id if session else ""
        address = await self.check_address(person, address.strip())
        lasts = lasts or self.settings.hooks.lasts
        if not timedelta(0) < lasts <= self.settings.hooks.longest:
            raise BadRequest(detail=f"a hook lasts {self.settings.hooks.longest.days} days at most.")
        id, now = str(uuid4()), self.now()
        secret = "" if address.startswith(MAILTO) else secrets.token_urlsafe(32)
        sealed = self.vault.seal(f"hook:{id}", secret) if secret else ""
        hook = Hook(id, person.name, of, address, sealed, words_of(events), now, now + lasts)
        made = await self.store.write(lambda tx: self._add_hook(tx, hook, host))
        await self.signals.announce()
        return made, secret

    def _add_hook(self, tx: Tx, hook: Hook, host: str) -> Hook:
        if len(tx.hooks.of(hook.person)) >= self.settings.hooks.most:
            raise TooManyHooks(most=self.settings.hooks.most)
        hook = replace(hook, after=tx.events.newest())
        tx.hooks.add(hook)
        detail = {"address": hook.address, "session": hook.session}
        tx.audit.add(AuditEntry(hook.created, hook.person, "hook.add", "hook", hook.id, detail, host))
        return hook

    async def check_address(self, person: Person, address: str) -> str:
        """Return the address if the person may have it notified; raise BadHook otherwise."""
        if person.guest:
            raise BadHook(address=address, why="guests of a personal service have no hooks")
        if address.startswith(MAILTO):
            to = address.removeprefix(MAILTO).strip().lower()
            if not {to, fold_address(to, self.settings.signing.subaddresses)} & await self.telling.own_addresses(
                person
            ):
                raise BadHook(address=to, why="mail is sent only to the address with which you signed in")
            return f"{MAILTO}{to}"
        if why := wrong_with(address, private=self.telling.calls_private):
            raise BadHook(address=address, why=why)
        return address

    async def hooks(self, person: Person) -> list[tuple[Hook, Sequence[Delivery]]]:
        """Return a person's hooks, each with its last deliveries."""
        return await self.store.read(
            lambda tx: [(hook, tx.hooks.last(hook.id, 3)) for hook in tx.hooks.of(person.name)]
        )

    async def remove_hook(self, person: Person, name: str, host: str = "") -> Hook:
        """Remove a hook."""
        hook = await self.hook(person, name)

        def remove(tx: Tx) -> None:
            tx.hooks.remove(hook.id)
            tx.audit.add(AuditEntry(self.now(), person.name, "hook.remove", "hook", hook.id, {}, host))

        await self.store.write(remove)
        return hook

    async def test_hook(self, person: Person, name: str) -> str:
        """Send a test and return the answer; a hook that was given up is used again if it accepts the test."""
        hook = await self.hook(person, name)
        self.throttle.spend("hook_tests_per_person", person.name)
        event = Event(0, self.now(), hook.session, person.name, EventKind.HOOK_TESTED, "This is a test.")
        answer = await self.telling.tell_hook(hook, f"{hook.id}.test.{secrets.token_hex(4)}", event, None)
        if not answer.well:
            seconds = f"{self.settings.hooks.patience.total_seconds():g}"
            hint = "Whoever runs the gateway looks at [mail] in its settings, and at its log." if hook.by_mail else ""
            raise NotTold(address=hook.address, why=answer.words, seconds=seconds, hint=hint)
        if hook.trouble:
            await self.store.write(lambda tx: tx.hooks.revive(hook.id, tx.events.newest()))
        return answer.words

    async def hook(self, person: Person, name: str) -> Hook:
        """Return a person's hook, by its id or a unique prefix of it; raise NotFound if there is none."""
        mine = await self.store.read(lambda tx: tx.hooks.of(person.name))
        matches = [hook for hook in mine if hook.id == name] or [hook for hook in mine if hook.id.startswith(name)]
        require_length(name, "hook")
        hook = pick_one(name, "hook", matches if name else [], lambda each: f"{each.id[:13]} ({each.address})")
        if hook is None:
            raise NotFound(noun="hook", name=name, hint="`sublet notify list` lists them.")
        return hook
