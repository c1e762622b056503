"""No block, limit or rule is escaped by another address of the same mailbox, whichever way someone comes in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.access.model.access import AccessRequest, Limits
from sublet.access.quotas import count_use, who_is
from sublet.app import open_service
from sublet.kernel.errors import AlreadyThere, BadAddress, BadRequest, WrongCode
from sublet.kernel.settings import Settings
from sublet.kernel.settings_tables import SigningSettings
from sublet.people.model.people import Identity, Known, Role
from sublet.people.model.person import Person
from sublet.people.same_mailbox import note_same_people
from sublet.service import Service
from tests.contract.services import ask, serving
from tests.smtp import Mailbox, running_smtp

pytestmark = pytest.mark.anyio
ROOT = Person("root", operator=True)
TRIAL = {"trial": {"kind": "memory", "nodes": 4, "cores": 8, "takes": "1h"}}
IMAGE: dict[str, Any] = {"run": None, "image": "docker://busybox"}
ADA, TAGGED = "ada@example.org", "Ada+Lab@Example.org"


@pytest.fixture(scope="module")
def mailbox() -> Iterator[Mailbox]:
    with running_smtp() as box:
        yield box


@pytest.fixture
async def service(tmp_path: Path, mailbox: Mailbox) -> AsyncIterator[Service]:
    settings = Settings.load(tmp_path, mode="gateway", mail=mailbox.settings, platforms={})
    async with open_service(settings, loop=False) as service:
        yield service


async def read_code(service: Service, mailbox: Mailbox, typed: str, to: str) -> str:
    """The code that an address was sent for another that was typed."""
    before = len(mailbox.to(to))
    await service.people.signing_in.ask_code(typed, "192.0.2.1")
    await asyncio.gather(*service.people.signing_in._mails)
    return mailbox.code(to, before + 1)


async def test_a_tagged_address_signs_in_the_same_person_by_the_same_mailbox(
    service: Service, mailbox: Mailbox
) -> None:
    first, _ = await service.people.signing_in.sign_in_by_code(ADA, await read_code(service, mailbox, ADA, ADA))
    second, _ = await service.people.signing_in.sign_in_by_code(TAGGED, await read_code(service, mailbox, TAGGED, ADA))
    assert (first.person, second.person) == (ADA, ADA)
    assert [one.known.name for one in await service.people.directory.people(ROOT)] == [ADA]


async def test_a_blocked_person_does_not_come_back_by_a_tag(service: Service, mailbox: Mailbox) -> None:
    code = await read_code(service, mailbox, "eve@example.org", "eve@example.org")
    await service.people.signing_in.sign_in_by_code("eve@example.org", code)
    await service.people.directory.block(ROOT, "eve+other@example.org", "enough")  # named by a tag, too
    for address in ("eve@example.org", "eve+2@example.org", "EVE+3@example.ORG"):
        before = len(mailbox.mails)
        await service.people.signing_in.ask_code(address, "192.0.2.2")
        await asyncio.gather(*service.people.signing_in._mails)
        assert len(mailbox.mails) == before, "no code is sent"
    with pytest.raises(WrongCode):
        await service.people.signing_in.sign_in_by_code("eve+2@example.org", "00000000")


async def test_nobody_is_called_like_a_pattern_and_old_ones_get_no_rule(service: Service) -> None:
    with pytest.raises(BadAddress):
        await service.people.signing_in.ask_code("*@example.org")
    with pytest.raises(BadAddress):
        await service.people.directory.add_person(ROOT, "*@example.org")
    request = AccessRequest("0123456789", "*@example.org", "system", "trial", "because", service.now())
    await service.store.write(lambda tx: tx.access_requests.add(request))
    with pytest.raises(BadRequest, match="would let others in too"):
        await service.access.requests.grant_access(request.id, ROOT)


async def test_a_domain_can_keep_its_addresses_apart_or_fold_dots_too(tmp_path: Path, mailbox: Mailbox) -> None:
    signing = SigningSettings(
        subaddresses={"example.org": "keep", "example.com": "fold-dots"}, allow=("cy+lab@example.net", "*@example.com")
    )
    settings = Settings.load(tmp_path, mode="gateway", mail=mailbox.settings, platforms={}, signing=signing)
    async with open_service(settings, loop=False) as service:
        assert await service.people.names.find_name("cy+a@example.org") == "cy+a@example.org"
        assert await service.people.names.find_name("c.y+a@example.com") == "cy@example.com"
        code = await read_code(service, mailbox, "cy+lab@example.net", "cy@example.net")
        token, _ = await service.people.signing_in.sign_in_by_code("cy+lab@example.net", code)
        assert token.person == "cy@example.net", "who is named with a tag may sign in"


async def test_dots_and_googles_other_domain_make_no_new_person(service: Service, mailbox: Mailbox) -> None:
    plain = "zoe@gmail.com"
    for typed in ("z.oe@gmail.com", "Zo.E@GoogleMail.com", "zoe+2@googlemail.com", plain):
        token, _ = await service.people.signing_in.sign_in_by_code(
            typed, await read_code(service, mailbox, typed, plain)
        )
        assert token.person == plain
    assert [one.known.name for one in await service.people.directory.people(ROOT)] == [plain]
    await service.people.directory.block(ROOT, "z.o.e@googlemail.com", "enough")
    for typed in ("z.oe@gmail.com", "zo.e@googlemail.com", "zoe+3@gmail.com"):
        before = len(mailbox.mails)
        await service.people.signing_in.ask_code(typed, "192.0.2.3")
        await asyncio.gather(*service.people.signing_in._mails)
        assert len(mailbox.mails) == before, "no code is sent"


async def test_rules_groups_and_limits_know_all_addresses_of_a_google_mailbox(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=TRIAL) as service:
        await service.people.directory.add_person(ROOT, "f.lo@googlemail.com")
        with pytest.raises(AlreadyThere):
            await service.people.directory.add_person(ROOT, "flo+x@gmail.com")
        with pytest.raises(AlreadyThere):
            await service.people.directory.add_identity(ROOT, "flo@gmail.com", "email", "fl.o@gmail.com")
        await service.people.groups.add_group(ROOT, "storm")
        assert (await service.people.groups.join_group(ROOT, "storm", "flo@googlemail.com")).members == (
            "flo@gmail.com",
        )
        rule = {"noun": "system", "name": "trial"}
        one = await service.access.rules.add_rule(
            ROOT, who="F.Lo@gmail.com", effect="allow", limits=Limits(jobs=1), **rule
        )
        assert one.rule.who == "flo@gmail.com"
        flo = Person("flo@gmail.com")
        offers = [await ask(service, flo, **IMAGE) for _ in range(2)]
        await service.sessions.accept(offers[0].offers[0].id, flo)
        assert (
            await ask(service, Person(await service.people.names.find_name("fl.o@googlemail.com")), **IMAGE)
        ).result == "NO"
        every = await service.access.rules.add_rule(ROOT, who="*@googlemail.com", effect="deny", **rule)
        assert every.rule.who == "*@gmail.com", "whoever has the one address has the other"


async def test_who_may_sign_in_by_one_domain_of_google_may_by_the_other(tmp_path: Path, mailbox: Mailbox) -> None:
    signing = SigningSettings(allow=("*@googlemail.com", "a.da@example.org"))
    settings = Settings.load(tmp_path, mode="gateway", mail=mailbox.settings, platforms={}, signing=signing)
    async with open_service(settings, loop=False) as service:
        for typed in ("tom@gmail.com", "t.om@googlemail.com"):
            code = await read_code(service, mailbox, typed, "tom@gmail.com")
            token, _ = await service.people.signing_in.sign_in_by_code(typed, code)
            assert token.person == "tom@gmail.com"


async def test_people_who_exist_twice_by_dots_share_a_block_from_the_next_start(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=TRIAL) as service:
        now = service.now()
        names = ("g.ina@gmail.com", "gina@googlemail.com", "gina@gmail.com")

        def come(tx: Any) -> None:
            for days, name in enumerate(names):
                tx.people.add(Known(name, Role.PERSON, now + timedelta(days=days)))

        await service.store.write(come)
        found = await service.store.write(lambda tx: note_same_people(tx, {}, now))
        assert sorted(name for name, _ in found) == sorted(names[1:])
        await service.people.directory.block(ROOT, names[0])
        for name in names:
            assert await service.people.standing.as_now(Person(name)) is None, name


async def test_people_who_exist_twice_already_share_blocks_rules_and_hours(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=TRIAL) as service:
        now = service.now()

        def come(tx: Any) -> None:
            for days, name in enumerate((ADA, "ada+2@example.org", "zoe+only@example.org")):
                tx.people.add(Known(name, Role.PERSON, now + timedelta(days=days)))

        await service.store.write(come)
        found = await service.store.write(lambda tx: note_same_people(tx, {}, now))
        assert found == [("ada+2@example.org", ADA)]
        assert await service.store.write(lambda tx: note_same_people(tx, {}, now)) == [], "once"
        assert await service.people.names.find_name("zoe@example.org") == "zoe+only@example.org", (
            "who has only a tagged address stays"
        )
        first, second = Person(ADA), Person("ada+2@example.org")
        rule = {"effect": "allow", "noun": "system", "name": "trial", "limits": Limits(jobs=1)}
        await service.access.rules.add_rule(ROOT, who=ADA, **rule)
        offers = await ask(service, second, **IMAGE)
        await service.sessions.accept(offers.offers[0].id, second)
        assert (
            await service.store.read(lambda tx: count_use(tx, who_is(tx, ADA, now), ("system", "trial"), now))
        ).jobs == 1
        assert (await ask(service, first, **IMAGE)).result == "NO", "the one session is taken"
        await service.people.directory.block(ROOT, ADA)
        assert await service.people.standing.as_now(second) is None
        identities = (await service.people.directory.profile(ROOT, ADA)).identities
        assert Identity("same-mailbox", "ada+2@example.org", ADA, now) in identities
