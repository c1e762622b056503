"""Signing in by a code: it can't be guessed, used twice, or used to learn who is known."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

from sublet.app import open_service
from sublet.kernel.errors import (
    BadAddress,
    Blocked,
    MailNotSent,
    NotAGateway,
    NotAllowedNow,
    NotYours,
    OperatorsOnly,
    TooMany,
    WrongCode,
)
from sublet.kernel.settings import Settings
from sublet.kernel.settings_tables import SigningSettings
from sublet.people.model.person import Person
from sublet.people.signing_in import TRIES
from tests.contract.signing_in import Gateway, opened, part, told
from tests.contract.stored import offer_some, rows
from tests.smtp import Mailbox, running_smtp

pytestmark = pytest.mark.anyio
ROOT = Person("root", operator=True)
NUMBERS = count(1)
MINUTE = timedelta(minutes=1)


@pytest.fixture(scope="module")
def mailbox() -> Iterator[Mailbox]:
    with running_smtp() as box:
        yield box


@pytest.fixture
def address() -> str:
    """An address that nobody had before: the mailbox is shared."""
    return f"anna{next(NUMBERS)}@example.org"


@pytest.fixture
async def gateway(tmp_path: Path, mailbox: Mailbox) -> AsyncIterator[Gateway]:
    async for one in opened(tmp_path, mailbox):
        yield one


@pytest.fixture
async def narrow(tmp_path: Path, mailbox: Mailbox) -> AsyncIterator[Gateway]:
    """A gateway that lets only some sign in."""
    async for one in opened(tmp_path, mailbox, signing=SigningSettings(allow=("*@Illinois.edu",))):
        yield one


async def test_a_code_by_mail_gives_a_token_that_is_its_persons(gateway: Gateway, address: str) -> None:
    code = await gateway.asks(address.upper())
    token, secret = await gateway.service.people.signing_in.sign_in_by_code(address, code, "192.0.2.1", note="laptop")
    assert (token.person, token.name, token.use) == (address, "laptop", "api")
    assert token.expires == gateway.clock() + timedelta(days=30)
    assert part(await gateway.service.people.tokens.bearer(secret)) == Person(address)
    profile = await gateway.service.people.directory.profile(Person(address), address)
    assert [(one.kind, one.value) for one in profile.identities] == [("email", address)]
    assert profile.known.seen == gateway.clock()
    assert [one.action for one in await gateway.audit(name=address)] == ["sign-in.ask", "person.come", "sign-in"]


async def test_the_code_is_stored_and_logged_nowhere(
    gateway: Gateway, address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = await gateway.asks(address)
    with pytest.raises(WrongCode):
        await gateway.service.people.signing_in.sign_in_by_code(address, "0" + code)
    await gateway.service.people.signing_in.sign_in_by_code(address, code)
    url = gateway.service.settings.database_url
    stored = [rows(url, f"SELECT * FROM {table}") for table in ("codes", "audit", "tokens")]
    said = str(stored) + "".join(capsys.readouterr())
    assert address in said
    for text in (code, code.replace(" ", "")):
        assert text not in said


async def test_a_code_counts_once(gateway: Gateway, address: str) -> None:
    code = await gateway.asks(address)
    await gateway.service.people.signing_in.sign_in_by_code(address, code.replace(" ", "-"))
    with pytest.raises(WrongCode):
        await gateway.service.people.signing_in.sign_in_by_code(address, code)


async def test_after_five_wrong_tries_even_the_right_code_fails(gateway: Gateway, address: str) -> None:
    code = await gateway.asks(address)
    wrong = f"{(int(code.replace(' ', '')) + 1) % 10**8:08}"
    for _ in range(TRIES):
        with pytest.raises(WrongCode):
            await gateway.service.people.signing_in.sign_in_by_code(address, wrong)
    with pytest.raises(WrongCode):
        await gateway.service.people.signing_in.sign_in_by_code(address, code)
    why = [one.detail["why"] for one in await gateway.audit("sign-in.refused")]
    assert why == ["wrong code"] * TRIES + ["too many tries"]
    again = await gateway.asks(address)
    assert (await gateway.service.people.signing_in.sign_in_by_code(address, again))[0].person == address


async def test_the_fifth_try_still_counts(gateway: Gateway, address: str) -> None:
    code = await gateway.asks(address)
    for _ in range(TRIES - 1):
        with pytest.raises(WrongCode):
            await gateway.service.people.signing_in.sign_in_by_code(address, "")
    assert await gateway.service.people.signing_in.sign_in_by_code(address, code)


async def test_a_code_is_good_for_ten_minutes_and_until_a_newer_one(gateway: Gateway, address: str) -> None:
    first = await gateway.asks(address)
    gateway.clock.time += 10 * MINUTE
    with pytest.raises(WrongCode):
        await gateway.service.people.signing_in.sign_in_by_code(address, first)
    second, gateway.clock.time = await gateway.asks(address), gateway.clock.time + MINUTE
    third = await gateway.asks(address)
    with pytest.raises(WrongCode):
        await gateway.service.people.signing_in.sign_in_by_code(address, second)
    assert await gateway.service.people.signing_in.sign_in_by_code(address, third)


async def test_a_code_is_for_its_own_address(gateway: Gateway, address: str) -> None:
    code = await gateway.asks(address)
    other = f"other-{address}"
    await gateway.asks(other)
    with pytest.raises(WrongCode):
        await gateway.service.people.signing_in.sign_in_by_code(other, code)


async def test_an_address_is_sent_so_many_codes_an_hour(gateway: Gateway, address: str) -> None:
    service = gateway.service
    own, all_hosts = (
        service.settings.throttle.sign_ins_per_person.most,
        service.settings.throttle.sign_ins_per_address.most,
    )
    for number in range(own):
        await service.people.signing_in.ask_code(address, f"2001:db8::{number}")  # all of them are one host
        gateway.clock.time += MINUTE
    with pytest.raises(TooMany) as caught:
        await service.people.signing_in.ask_code(address, "2001:db8::200")
    assert caught.value.values["seconds"] == 3600 - own * 60
    await service.people.signing_in.ask_code(f"other-{address}", "2001:db8::200")
    for number in range(all_hosts - own):
        await service.people.signing_in.ask_code(address, f"192.0.2.{number}")
    with pytest.raises(TooMany):
        await service.people.signing_in.ask_code(address, "192.0.2.200")
    for _ in range(own):
        await service.people.signing_in.ask_code(address, "2001:db8::1", known=True)
    with pytest.raises(TooMany):
        await service.people.signing_in.ask_code(address, "192.0.2.200", known=True)
    with pytest.raises(TooMany):
        await service.people.signing_in.ask_code(address, "192.0.2.200")
    gateway.clock.time += (60 - own) * MINUTE
    await service.people.signing_in.ask_code(address, "192.0.2.1")
    assert await gateway.mailbox.comes_for(address, all_hosts + own + 1)
    assert (await gateway.audit("sign-in.ask"))[-1].host == "192.0.2.1"


@pytest.fixture
async def strict(tmp_path: Path, mailbox: Mailbox) -> AsyncIterator[Gateway]:
    """A gateway whose operator set lower limits."""
    limits = {"sign_ins_per_host": "30/10m", "codes_per_host": "60/10m", "sign_ins_per_person": "2/m"}
    async for one in opened(tmp_path, mailbox, throttle=limits):
        yield one


async def test_an_operator_sets_how_often_one_person_and_one_host_can_ask(strict: Gateway, address: str) -> None:
    asked = [await told(strict.service.people.signing_in.ask_code(address, "192.0.2.68")) for _ in range(3)]
    assert asked == [None, None, TooMany]
    strict.clock.time += MINUTE
    assert await told(strict.service.people.signing_in.ask_code(address, "192.0.2.68")) is None


async def test_a_host_asks_and_tries_so_often_and_no_more(strict: Gateway, address: str) -> None:
    gateway = strict
    asked = [await told(gateway.service.people.signing_in.ask_code(f"n{n}-{address}", "192.0.2.66")) for n in range(40)]
    assert (asked[0], asked[-1]) == (None, TooMany)
    trying = [
        gateway.service.people.signing_in.sign_in_by_code(f"n{n}-{address}", "12345678", "192.0.2.66")
        for n in range(70)
    ]
    tried = [await told(one) for one in trying]
    assert (tried[0], tried[-1]) == (WrongCode, TooMany)
    code = await gateway.asks(address, "192.0.2.67")
    assert await gateway.service.people.signing_in.sign_in_by_code(address, code, "192.0.2.67")


async def test_asking_tells_and_writes_the_same_whoever_is_asked_for(narrow: Gateway, address: str) -> None:
    inside, outside, blocked = "anna@illinois.edu", f"eve@illinois.edu.{address[-11:]}", "mallory@illinois.edu"
    await narrow.service.people.directory.add_person(ROOT, blocked)
    await narrow.service.people.directory.block(ROOT, blocked, "left")
    url = narrow.service.settings.database_url
    for one in (inside, outside, blocked):
        before = {table: len(rows(url, f"SELECT * FROM {table}")) for table in ("codes", "audit", "people")}
        assert await narrow.service.people.signing_in.ask_code(one, "192.0.2.1") is None
        after = {table: len(rows(url, f"SELECT * FROM {table}")) for table in before}
        assert {table: after[table] - before[table] for table in before} == {"codes": 1, "audit": 1, "people": 0}
        with pytest.raises(WrongCode):
            await narrow.service.people.signing_in.sign_in_by_code(one, "nothing")
    await narrow.mailbox.comes_for(inside)
    assert narrow.mailbox.to(outside) == narrow.mailbox.to(blocked) == []
    refused = [one.detail["refused"] for one in await narrow.audit("sign-in.ask")]
    assert refused == ["", "not allowed", "blocked"]


async def test_whom_an_operator_added_signs_in_whatever_the_patterns_say(narrow: Gateway, address: str) -> None:
    await narrow.service.people.directory.add_person(ROOT, address, "reviewer")
    code = await narrow.asks(address)
    _, secret = await narrow.service.people.signing_in.sign_in_by_code(address, code)
    assert part(await narrow.service.people.tokens.bearer(secret)) == Person(address, reviewer=True)


async def test_who_is_blocked_between_asking_and_trying_does_not_come_in(gateway: Gateway, address: str) -> None:
    await gateway.service.people.directory.add_person(ROOT, address)
    code = await gateway.asks(address)
    await gateway.service.people.directory.block(ROOT, address)
    with pytest.raises(WrongCode):
        await gateway.service.people.signing_in.sign_in_by_code(address, code)


async def test_a_block_and_a_change_of_part_count_at_once(gateway: Gateway, address: str) -> None:
    service = gateway.service
    await service.people.directory.add_person(ROOT, address, "operator")
    _, secret = await service.people.signing_in.sign_in_by_code(address, await gateway.asks(address))
    visit = await service.people.signing_in.visiting(Person(address))
    assert part(await service.people.tokens.bearer(secret)) == Person(address, operator=True)
    await service.people.directory.set_role(ROOT, address, "person")
    assert (
        part(await service.people.tokens.bearer(secret))
        == part(await service.people.signing_in.visit(visit.id))
        == Person(address)
    )
    with pytest.raises(OperatorsOnly):
        await service.people.directory.people(Person(address))
    await service.people.directory.block(ROOT, address, "left")
    for look in (lambda: service.people.tokens.bearer(secret), lambda: service.people.signing_in.visit(visit.id)):
        with pytest.raises(Blocked, match=f"An operator has blocked {address};"):
            await look()
    await service.people.directory.unblock(ROOT, address)
    assert part(await service.people.tokens.bearer(secret)) == Person(address)
    await service.people.directory.remove_person(ROOT, address)
    assert await service.people.tokens.bearer(secret) is None
    actions = [one.action for one in await gateway.audit("person.", address)]
    assert actions == ["person.add", "person.role", "person.block", "person.unblock", "person.remove"]


async def test_a_browsers_visit_ends_by_itself_and_when_it_is_ended(gateway: Gateway, address: str) -> None:
    service, person = gateway.service, Person(address)
    first, second = (
        await service.people.signing_in.visiting(person, "Firefox"),
        await service.people.signing_in.visiting(person),
    )
    assert [one.use for one in await service.people.tokens.tokens(person)] == ["browser", "browser"]
    await service.people.signing_in.end_visit(person, first.id)
    assert await service.people.signing_in.visit(first.id) is None
    assert part(await service.people.signing_in.visit(second.id)) == person
    gateway.clock.time += timedelta(hours=12)
    assert await service.people.signing_in.visit(second.id) is None


async def test_a_second_address_leads_to_the_same_person(gateway: Gateway, address: str) -> None:
    await gateway.service.people.directory.add_person(ROOT, address)
    await gateway.service.people.directory.add_identity(ROOT, address, "email", f"home-{address}")
    token, _ = await gateway.service.people.signing_in.sign_in_by_code(
        f"home-{address}", await gateway.asks(f"home-{address}")
    )
    assert token.person == address


async def test_a_mail_that_is_refused_is_written_down_and_tells_the_asker_nothing(
    gateway: Gateway, address: str
) -> None:
    gateway.mailbox.refuses = address
    await gateway.service.people.signing_in.ask_code(address)
    while not (found := await gateway.audit("sign-in.not-sent", address)):
        await gateway.service.signals.wait(0.02)
    assert "no such mailbox" in found[0].detail["why"]
    assert not re.search(r"\d{8}|\d{4} \d{4}", str(found[0].detail))


async def test_a_line_in_an_address_goes_nowhere(gateway: Gateway, address: str) -> None:
    before = len(gateway.mailbox.mails)
    for text in (f"{address}\r\nBcc: eve@example.net", f"{address},eve@example.net", f"{address}\n"):
        with pytest.raises(BadAddress):
            await gateway.service.people.signing_in.ask_code(text)
    assert len(gateway.mailbox.mails) == before
    assert await gateway.audit() == []


async def test_nobody_signs_in_without_mail_or_to_a_personal_service(tmp_path: Path, address: str) -> None:
    for mode, error in (("gateway", MailNotSent), ("personal", NotAGateway)):
        settings = Settings.load(tmp_path / mode, mode=mode, platforms={})
        async with open_service(settings, loop=False) as service:
            with pytest.raises(error):
                await service.people.signing_in.ask_code(address)


async def test_guesses_at_the_same_time_are_counted_one_by_one(gateway: Gateway, address: str) -> None:
    code = await gateway.asks(address)
    wrong = f"{(int(code.replace(' ', '')) + 1) % 10**8:08}"
    guesses = [gateway.service.people.signing_in.sign_in_by_code(address, wrong, f"192.0.2.{n}") for n in range(40)]
    assert set(await asyncio.gather(*map(told, guesses))) == {WrongCode}
    assert await told(gateway.service.people.signing_in.sign_in_by_code(address, code, "192.0.2.50")) is WrongCode
    why = Counter(one.detail["why"] for one in await gateway.audit("sign-in.refused"))
    assert why == {"wrong code": TRIES, "too many tries": 40 - TRIES + 1}


async def test_codes_that_are_asked_for_at_the_same_time_are_counted_one_by_one(gateway: Gateway, address: str) -> None:
    all_hosts = gateway.service.settings.throttle.sign_ins_per_address.most
    asking = [gateway.service.people.signing_in.ask_code(address, f"192.0.{n}.1") for n in range(40)]
    asked = Counter(await asyncio.gather(*map(told, asking)))
    assert asked == {None: all_hosts, TooMany: 40 - all_hosts}
    await asyncio.gather(*gateway.service.people.signing_in._mails)
    assert len(gateway.mailbox.to(address)) == all_hosts


async def test_a_code_that_is_used_many_times_at_once_lets_one_in(gateway: Gateway, address: str) -> None:
    code = await gateway.asks(address)
    tries = [gateway.service.people.signing_in.sign_in_by_code(address, code, f"192.0.2.{n}") for n in range(5)]
    assert Counter(await asyncio.gather(*map(told, tries))) == {None: 1, WrongCode: 4}
    assert len(await gateway.service.people.tokens.tokens(Person(address))) == 1


async def test_a_token_for_someone_is_theirs_however_their_address_is_written(gateway: Gateway, address: str) -> None:
    await gateway.service.people.directory.add_person(ROOT, address)
    await gateway.service.people.directory.add_identity(ROOT, address, "email", f"home-{address}")
    for written in (address.upper(), f"Home-{address}"):
        token, secret = await gateway.service.people.tokens.make_token(ROOT, for_person=written)
        assert token.person == address
    await gateway.service.people.directory.block(ROOT, address)
    with pytest.raises(Blocked):
        await gateway.service.people.tokens.bearer(secret)


async def test_tokens_that_have_expired_are_forgotten_when_their_person_comes_again(
    gateway: Gateway, address: str
) -> None:
    await gateway.service.people.signing_in.visiting(Person(address))
    gateway.clock.time += timedelta(hours=12)
    await gateway.service.people.signing_in.sign_in_by_code(address, await gateway.asks(address))
    assert [one.use for one in await gateway.service.people.tokens.tokens(Person(address))] == ["api"]


async def test_nobody_comes_to_what_a_blocked_person_runs(gateway: Gateway, address: str) -> None:
    await gateway.service.people.directory.add_person(ROOT, address)
    session = (await gateway.service.store.write(lambda tx: offer_some(tx, address)))[0]
    with pytest.raises(NotAllowedNow):
        await gateway.service.connections.upstream(session.id)
    await gateway.service.people.directory.block(ROOT, address)
    with pytest.raises(NotYours):
        await gateway.service.connections.upstream(session.id)
