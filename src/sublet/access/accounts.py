"""Community accounts: the logins at centres under which a gateway runs its people's sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from sublet.access.account_platforms import PURPOSE, AccountPlatforms
from sublet.access.model.access import AccessRule, Limits
from sublet.access.model.account import CONNECTORS, Account, host_key
from sublet.access.model.hpc_json import ImportPlan, read_hpc
from sublet.access.quotas import Quotas
from sublet.access.rules import AccessRules
from sublet.booking.model.amounts import parse_duration, parse_memory
from sublet.booking.model.fair_share import Turn
from sublet.booking.platforms.changes import PlatformChanges
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.recorded_clock import read_recorded_now
from sublet.booking.signals import Signals
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import (
    AccountInUse,
    BadAccount,
    NotFound,
    OperatorsOnly,
    SubletError,
    UnknownHostKey,
)
from sublet.kernel.settings import Settings
from sublet.kernel.settings_lines import at_setting
from sublet.kernel.ssh_keys import read_key
from sublet.kernel.vault import Vault
from sublet.people.model.mailboxes import fold_address
from sublet.people.model.person import Person
from sublet.platforms.registry import list_addable_options, load_platforms
from sublet.reach.host_keys import scan
from sublet.store.store import Store
from sublet.store.tx import Tx

MOST = 1000  # sessions that are counted when an account is removed
HINT = "`sublet account list` lists the accounts."
READ: dict[str, Callable[[Any], Any]] = {"time": parse_duration, "memory": parse_memory}  # parsers of limits
FIXED = ("name", "created", "changed", "by", "public")


@dataclass(frozen=True, slots=True)
class AccountState:
    """An account, and the sessions that use it."""

    account: Account
    turns: Sequence[Turn] = ()
    trouble: str = ""  # why it can't be used at present
    usable: bool = True  # by the viewer; others see what it is, but not how busy


@dataclass
class Accounts:
    """Adds, changes, lists and removes accounts, for operators only; a key is never shown again."""

    settings: Settings
    store: Store
    now: Clock
    platforms: KnownPlatforms
    signals: Signals
    vault: Vault
    authority: Authority
    quotas: Quotas
    rules: AccessRules
    account_platforms: AccountPlatforms
    changes: PlatformChanges

    async def accounts(self, person: Person) -> list[AccountState]:
        """List the accounts, as the person may see them."""
        listed = await self.store.read(
            lambda tx: [(account, tx.turns.of(account.name)) for account in tx.accounts.list()]
        )
        return [await self._as_seen(person, *account) for account in listed]

    async def account(self, name: str, person: Person) -> AccountState:
        """Return one account."""
        account, turns = await self.store.read(lambda tx: (tx.accounts.get(name), tx.turns.of(name)))
        if account is None:
            raise NotFound(noun="account", name=name, hint=HINT)
        return await self._as_seen(person, account, turns)

    async def _as_seen(self, person: Person, account: Account, turns: Sequence[Turn]) -> AccountState:
        if not person.operator and await self.quotas.find_refusal(person, "account", account.name):
            return AccountState(account, usable=False)
        return AccountState(account, turns, self.platforms.broken.get(f"account {account.name}", ""))

    async def add_account(
        self,
        person: Person,
        account: Account,
        key: str,
        passphrase: str = "",
        *,
        rules: Sequence[Mapping[str, Any]] = (),
        host: str = "",
    ) -> Account:
        """Add an account with its key, sealed, and the rules that come with it; it becomes a platform at once."""
        _operator(person)
        about = [self._rule_of(person, account.name, rule) for rule in rules]
        self._check_account(account)
        if account.name in self.platforms.by_name:
            raise BadAccount(name=account.name, why="another platform is called so")
        whole, public = await asyncio.to_thread(read_key, key, passphrase)
        sealed = await asyncio.to_thread(self.vault.seal, PURPOSE.format(account.name), whole)
        now = self.now()
        new = replace(account, public=public, created=now, changed=now, by=person.name)
        entry = AuditEntry(now, person.name, "account.add", "account", new.name, _describe_for_audit(new), host)

        def add(tx: Tx) -> None:
            if tx.accounts.get(new.name):
                raise BadAccount(
                    name=new.name, why="there is one of that name", hint=f"sublet account change {new.name}"
                )
            tx.accounts.add(new, sealed, now)
            tx.audit.add(entry)
            for rule in about:
                self.rules.add_in(tx, rule, host)

        await self.store.write(add)
        await self._accounts_taken_up()
        return new

    async def change_account(
        self, person: Person, name: str, changes: dict[str, Any], key: str = "", passphrase: str = "", *, host: str = ""
    ) -> Account:
        """Change an account, or replace its key."""
        _operator(person)
        old = (await self.account(name, person)).account
        public, sealed = old.public, ""
        if key:
            whole, public = await asyncio.to_thread(read_key, key, passphrase)
            sealed = await asyncio.to_thread(self.vault.seal, PURPOSE.format(name), whole)
        now = self.now()
        given = {field: value for field, value in changes.items() if field not in FIXED}
        new = replace(old, **given, public=public, changed=now)
        self._check_account(new)
        detail = {field: _describe_for_audit(new).get(field) for field in given} | (
            {"key": new.fingerprint} if key else {}
        )

        def change(tx: Tx) -> None:
            if not tx.accounts.change(new, now):
                raise NotFound(noun="account", name=name, hint=HINT)
            if sealed:
                tx.accounts.seal(name, sealed)
            recorded = read_recorded_now(tx, now)
            for id in tx.turns.share_again(name, recorded):
                tx.sessions.change(id, now=recorded, due=recorded)
            tx.audit.add(AuditEntry(now, person.name, "account.change", "account", name, detail, host))

        await self.store.write(change)
        await self._accounts_taken_up()
        await self.signals.announce()
        return new

    async def remove_account(self, person: Person, name: str, *, host: str = "") -> None:
        """Remove an account and its key; the records of its sessions stay."""
        _operator(person)
        now = self.now()

        def remove(tx: Tx) -> None:
            if count := len(tx.sessions.list(platform=name, active=True, limit=MOST).items):
                raise AccountInUse(name=name, count=count)
            if not tx.accounts.remove(name):
                raise NotFound(noun="account", name=name, hint=HINT)
            tx.audit.add(AuditEntry(now, person.name, "account.remove", "account", name, {}, host))

        await self.store.write(remove)
        await self._accounts_taken_up()

    async def check_account(self, person: Person, name: str) -> AccountState:
        """Sign in with the account now; its `trouble` says what is wrong."""
        _operator(person)
        state = await self.account(name, person)
        await self._accounts_taken_up()
        self.platforms.surveys.pop(name, None)
        if state.trouble or name not in self.platforms.by_name:
            return state
        try:
            await self.platforms.survey(name)  # without a time limit: somebody waits for the result
        except SubletError as error:
            return replace(state, trouble=error.sentences)
        return state

    async def host_keys(self, person: Person, host: str, port: int) -> Sequence[str]:
        """Return the keys that a host shows, for a person to confirm, as an attacker in between could show others."""
        _operator(person)
        return await scan(host, port)

    def plans(self, person: Person, document: object) -> list[ImportPlan]:
        """Return what the accounts of an `hpc.json` would become here, without changing anything."""
        _operator(person)
        return read_hpc(document, list_addable_options(CONNECTORS.values()))

    async def reseal(self) -> dict[str, int]:
        """Seal the accounts' keys again, with the newest master key."""
        keys = await self.store.read(lambda tx: tx.accounts.keys())
        new = {
            name: await asyncio.to_thread(self.vault.reseal, PURPOSE.format(name), key) for name, key in keys.items()
        }

        def seal(tx: Tx) -> None:
            for name, key in new.items():
                if tx.accounts.key(name) == keys[name]:  # otherwise its key was replaced meanwhile
                    tx.accounts.seal(name, key)

        await self.store.write(seal)
        return {"account": len(new)}

    def _rule_of(self, person: Person, name: str, rule: Mapping[str, Any]) -> AccessRule:
        """Make a rule that came with an account; raise an error on a personal service, which has no rules."""
        self.authority.require_operator(person)
        try:
            limits = Limits(**{key: READ.get(key, int)(value) for key, value in rule.get("limits", {}).items()})
        except (TypeError, ValueError) as error:
            raise BadAccount(name=name, why="a rule that comes with it has a limit that is none") from error
        who = fold_address(str(rule["who"]).lower(), self.settings.signing.subaddresses)
        note = "came with the account"
        return AccessRule(
            str(uuid4()), rule["effect"], who, "account", name, self.now(), limits, by=person.name, note=note
        )

    def _check_account(self, account: Account) -> None:
        """Raise an error unless the account can be a platform and its host keys are confirmed."""
        if not account.host_keys or not all(map(host_key, account.host_keys)):
            raise UnknownHostKey(host=account.host)

        def refuse(path: Sequence[str | int], why: str) -> BadAccount:
            return BadAccount(name=account.name, why=at_setting(path[2:], why))

        _, broken = load_platforms({account.name: self.account_platforms.platform_settings(account)}, refuse)
        if broken:
            raise BadAccount(name=account.name, why=next(iter(broken.values())))

    async def _accounts_taken_up(self) -> None:
        """Update the platforms from the accounts at once."""
        self.account_platforms.look_again()
        await self.changes.refresh()


def _describe_for_audit(account: Account) -> dict[str, Any]:
    """Return what the audit log records of an account."""
    who = {"host": account.host, "port": account.port, "user": account.user, "key": account.fingerprint}
    names = ("capacity", "queue", "project", "qos", "options", "modules", "directory", "wckey", "description")
    return who | {name: getattr(account, name) for name in names}


def _operator(person: Person) -> None:
    if not person.operator:
        raise OperatorsOnly
