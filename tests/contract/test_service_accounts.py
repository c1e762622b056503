"""Community accounts: recorded with a sealed key, platforms at once, their places shared between people."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sublet.access.model.account import Account, host_key
from sublet.app import open_service
from sublet.booking.model.estimate import Sample
from sublet.booking.model.phases import OVER, Phase
from sublet.kernel.errors import AccountInUse, BadAccount, BadKey, NoMasterKey, NotFound, OperatorsOnly, UnknownHostKey
from sublet.kernel.master_key import make
from sublet.kernel.settings import Settings
from sublet.notices.model.hooks import Hook
from sublet.people.model.person import Person
from sublet.service import Service
from tests.contract.services import ask, reach

pytestmark = pytest.mark.anyio
OPERATOR = Person("olga@example.org", operator=True)
ANN, BOB = Person("ann@example.org"), Person("bob@example.org")
NOWHERE = 9  # nothing listens on this port


class Pair(NamedTuple):
    """The two halves of a key."""

    private: str
    public: str


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A key pair, which is also used as a host's."""
    file = tmp_path_factory.mktemp("keys") / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "sesame", "-f", file], check=True)
    return Pair(file.read_text(), file.with_suffix(".pub").read_text())


def keeling(key: Pair, **more: Any) -> Account:
    known = (host_key(key.public),)
    return replace(Account("keeling", "127.0.0.1", "community", port=NOWHERE, host_keys=known), **more)


@contextlib.asynccontextmanager
async def gateway(tmp_path: Path, **values: Any) -> AsyncIterator[Service]:
    """A gateway with a master key."""
    if not (tmp_path / "master").exists():
        make(str(tmp_path / "master"))
    settings = {"mode": "gateway", "master_key": str(tmp_path / "master"), "platforms": {"trial": {"kind": "memory"}}}
    async with open_service(Settings.load(tmp_path / "home", **{**settings, **values})) as service:
        yield service


async def test_an_account_is_a_platform_at_once_in_every_process_and_its_key_is_nowhere_open(
    tmp_path: Path, key: Pair
) -> None:
    async with gateway(tmp_path) as service, gateway(tmp_path) as other:
        await service.access.accounts.add_account(OPERATOR, keeling(key, description="for all"), key.private, "sesame")
        assert "keeling" in service.platforms.by_name
        assert service.platforms.noun_of("keeling") == "account"
        await other.changes.refresh()
        if "keeling" not in other.platforms.by_name:  # it was looked at just now
            other.access.account_platforms.look_again()
            await other.changes.refresh()
        assert "keeling" in other.platforms.by_name
        assert "keeling" in {one.account.name for one in await service.access.accounts.accounts(OPERATOR)}
        stored = await service.store.read(lambda tx: tx.accounts.key("keeling"))
        opened = service.vault.open("account:keeling", stored)
        body = opened.splitlines()[1:-1]
        for file in (file for file in (tmp_path / "home").rglob("*") if file.is_file()):
            assert not any(line.encode() in file.read_bytes() for line in body), file
        assert (tmp_path / "home" / "accounts" / "keeling" / "key.pub").read_text().strip() in key.public

        with pytest.raises(BadAccount, match="another platform is called so"):
            await service.access.accounts.add_account(OPERATOR, keeling(key), key.private, "sesame")
        changed = await service.access.accounts.change_account(OPERATOR, "keeling", {"capacity": 3, "name": "other"})
        assert (changed.capacity, changed.name) == (3, "keeling")
        state = await service.access.accounts.check_account(OPERATOR, "keeling")
        assert "can't be reached" in state.trouble

        sealed = service.vault.seal("hook:h1", "signed")
        hook = Hook("h1", ANN.name, "", "https://example.org", sealed, (), service.now(), service.now())
        await service.store.write(lambda tx: tx.hooks.add(hook))
        make(str(tmp_path / "master"), more=True)
        done = await service.access.rekeying.rekey(OPERATOR)
        assert (done["account"], done["hook"]) == (1, 1)
        again = (await service.store.read(lambda tx: tx.hooks.secrets()))["h1"]
        assert again != sealed
        assert service.vault.open("hook:h1", again) == "signed"
        assert await service.store.read(lambda tx: tx.accounts.key("keeling")) != stored

        await service.access.accounts.remove_account(OPERATOR, "keeling")
        assert "keeling" not in service.platforms.by_name
        with pytest.raises(NotFound):
            await service.access.accounts.account("keeling", OPERATOR)
        log = await service.store.read(lambda tx: tx.audit.list())
        acts = ["account.add", "account.change", "vault.rekey", "account.remove"]
        assert [entry.action for entry in log if entry.action in acts] == acts
        assert not any(line in repr(log) for line in body)


async def test_an_account_that_is_added_again_at_another_host_has_no_record_of_the_old_one(
    tmp_path: Path, key: Pair
) -> None:
    async with gateway(tmp_path) as service:
        await service.access.accounts.add_account(OPERATOR, keeling(key), key.private, "sesame")
        at = service.now() - timedelta(days=1)
        sample = Sample("long", 1, 1, at, at + timedelta(hours=9), at)
        site = service.platforms.get("keeling").site
        await service.store.write(lambda tx: tx.starts.add("0" * 36, "keeling", sample, site))
        assert [track.samples for track in await service.probing.record("keeling", OPERATOR)] == [1]

        await service.access.accounts.change_account(OPERATOR, "keeling", {"host": "localhost"})
        assert not await service.probing.record("keeling", OPERATOR)
        await service.access.accounts.remove_account(OPERATOR, "keeling")
        await service.access.accounts.add_account(OPERATOR, keeling(key, host="localhost"), key.private, "sesame")
        assert not await service.probing.record("keeling", OPERATOR)

        await service.access.accounts.change_account(OPERATOR, "keeling", {"host": "127.0.0.1"})
        assert [track.samples for track in await service.probing.record("keeling", OPERATOR)] == [1], (
            "it is there again"
        )


async def test_what_can_be_no_account_is_refused_before_anything_is_stored(tmp_path: Path, key: Pair) -> None:
    async with gateway(tmp_path) as service:
        text = key.private
        with pytest.raises(OperatorsOnly):
            await service.access.accounts.add_account(ANN, keeling(key), text, "sesame")
        with pytest.raises(UnknownHostKey):
            await service.access.accounts.add_account(OPERATOR, keeling(key, host_keys=()), text, "sesame")
        with pytest.raises(BadKey, match="passphrase"):
            await service.access.accounts.add_account(OPERATOR, keeling(key), text)
        with pytest.raises(BadAccount, match="--wrap can't be added here"):
            await service.access.accounts.add_account(OPERATOR, keeling(key, options=("--wrap=rm",)), text, "sesame")
        with pytest.raises(BadAccount, match="another platform"):
            await service.access.accounts.add_account(OPERATOR, keeling(key, name="trial"), text, "sesame")
        bad = {"effect": "deny", "who": "*", "limits": {"wheels": 4}}
        with pytest.raises(BadAccount, match="a limit that is none"):
            await service.access.accounts.add_account(OPERATOR, keeling(key), text, "sesame", rules=[bad])
        assert await service.access.accounts.accounts(OPERATOR) == []
    async with gateway(tmp_path, master_key="") as service:
        with pytest.raises(NoMasterKey):
            await service.access.accounts.add_account(OPERATOR, keeling(key), key.private, "sesame")


async def test_the_rules_that_come_with_an_account_count_at_once(tmp_path: Path, key: Pair) -> None:
    rules = [
        {"effect": "allow", "who": "*@example.org"},
        {"effect": "deny", "who": "Bob@example.org"},
        {"effect": "deny", "who": "*", "limits": {"nodes": 4, "time": "10h", "memory": "50GiB"}},
    ]
    async with gateway(tmp_path) as service:
        await service.access.accounts.add_account(OPERATOR, keeling(key), key.private, "sesame", rules=rules)
        assert await service.access.quotas.find_refusal(ANN, "account", "keeling") is None
        assert await service.access.quotas.find_refusal(BOB, "account", "keeling") is not None
        assert await service.access.quotas.find_refusal(Person("eve@elsewhere.org"), "account", "keeling") is not None


async def test_an_account_that_can_no_longer_be_used_is_shown_with_the_reason_and_holds_up_no_other(
    tmp_path: Path, key: Pair
) -> None:
    async with gateway(tmp_path) as service:
        old = keeling(key, name="old", options=("--wrap=rm",))  # as another release may have taken it
        await service.store.write(lambda tx: tx.accounts.add(old, "", service.now()))
        await service.access.accounts.add_account(OPERATOR, keeling(key), key.private, "sesame")
        assert {"keeling", "trial"} == set(service.platforms.by_name)
        assert "--wrap can't be added here" in (await service.access.accounts.account("old", OPERATOR)).trouble
        seen = await service.access.accounts.account("old", Person("stranger@example.org"))
        assert (seen.usable, seen.trouble, seen.turns) == (False, "", ())


async def test_one_persons_sessions_wait_for_their_turns_and_let_anothers_first_go_before(tmp_path: Path) -> None:
    long = {"trial": {"kind": "memory", "nodes": 20, "takes": "1h"}}
    async with gateway(tmp_path, mode="personal", platforms=long) as service:
        service.platforms.noun_of = lambda name: "account"  # the trial platform stands for an account's
        trial = Account("trial", "h.example.org", "u", capacity=2)
        await service.store.write(lambda tx: tx.accounts.add(trial, "", service.now()))

        async def start(person: Person) -> str:
            offers = await ask(service, person, time="1h", start="now")
            return (await service.sessions.accept(offers.offers[0].id, person)).id

        anns = [await start(ANN) for _ in range(2)]
        for id in anns:
            await reach(service, id, lambda s: s.phase is Phase.RUNNING, ANN)
        third = await start(ANN)
        waits = await reach(service, third, lambda s: s.condition.startswith("waits for a turn"), ANN)
        assert waits.condition == "waits for a turn: 2 of the account's 2 jobs are there"
        assert not waits.job
        bobs = await start(BOB)
        await reach(service, bobs, lambda s: s.condition.startswith("waits for a turn"), BOB)
        with pytest.raises(AccountInUse):
            await service.access.accounts.remove_account(OPERATOR, "trial")
        await service.sessions.cancel(anns[0], ANN)
        await reach(service, bobs, lambda s: s.phase is Phase.RUNNING, BOB)
        assert (await service.sessions.get(third, ANN)).condition.startswith("waits for a turn")
        await service.sessions.cancel(third, ANN)  # what waits can be cancelled, and takes no place
        turns = await service.store.read(lambda tx: tx.turns.of("trial"))
        while third in {turn.session for turn in turns}:
            await service.signals.wait(0.05)
            turns = await service.store.read(lambda tx: tx.turns.of("trial"))
        assert {turn.session for turn in turns} == {anns[1], bobs}


async def test_a_person_sees_what_they_used_and_an_operator_all_of_it(tmp_path: Path) -> None:
    short = {"trial": {"kind": "memory", "takes": "0.1s"}}
    async with gateway(tmp_path, mode="personal", platforms=short) as service:
        for person in (ANN, ANN, BOB):
            offers = await ask(service, person, cores=2, time="1h", start="now")
            id = (await service.sessions.accept(offers.offers[0].id, person)).id
            while (session := await service.sessions.get(id, person)).phase not in OVER:
                await service.signals.wait(0.05)
            assert session.phase is Phase.COMPLETED
        mine = await service.access.usage.usage(ANN)
        assert [(row.person, row.sessions) for row in mine.rows] == [(ANN.name, 2)]
        assert mine.rows[0].core_hours > 0
        assert {row.person for row in (await service.access.usage.usage(OPERATOR)).rows} == {ANN.name, BOB.name}
        assert (await service.access.usage.usage(OPERATOR, platform="elsewhere")).rows == []
        later = service.now() + timedelta(days=1)
        assert (await service.access.usage.usage(OPERATOR, since=later, until=later + timedelta(days=1))).rows == []
