"""The archive of a service: written as sessions end, seen by whom it belongs to, and erased when they say so."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from sublet.archive.archive import EXPORTED, ArchiveFilter
from sublet.kernel.errors import BadRequest, NotFound, OperatorsOnly
from sublet.people.model.person import Person
from sublet.service import Service
from tests.contract.services import ME, OPERATOR, OTHER, ask, over, serving

pytestmark = pytest.mark.anyio
ALL = ArchiveFilter()
TRIAL = {"trial": {"kind": "memory", "takes": "0s"}}


async def run_one(service: Service, person: Person) -> str:
    offers = (await ask(service, person, name="=cmd()")).offers
    session = await service.sessions.accept(offers[0].id, person)
    await over(service, session.id, person)
    return session.id


async def exported(service: Service, person: Person, form: str) -> str:
    return b"".join([piece async for piece in service.archive.export(person, ALL, form)]).decode()


async def test_a_person_sees_their_own_records_and_an_operator_all(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=TRIAL) as service:
        mine, theirs = await run_one(service, ME), await run_one(service, OTHER)
        await service.sessions.delete(mine, ME)
        records, following = await service.archive.page(ME, ALL)
        assert ([kept.record.session for kept in records], following) == ([mine], None)
        everything, _ = await service.archive.page(OPERATOR, ALL)
        assert {kept.record.session for kept in everything} == {mine, theirs}
        with pytest.raises(OperatorsOnly):
            await service.archive.page(ME, ArchiveFilter(person="other"))
        with pytest.raises(BadRequest):
            await service.archive.page(ME, ALL, after="nonsense")
        text, kind = await service.archive.request(ME, mine)
        assert (json.loads(text)["run"], kind) == (["true"], "application/json")
        with pytest.raises(NotFound):
            await service.archive.request(ME, theirs)


async def test_an_export_has_every_column_and_no_formula(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=TRIAL) as service:
        mine = await run_one(service, ME)
        head, row = csv.reader(io.StringIO(await exported(service, ME, "csv")))
        assert tuple(head) == EXPORTED
        assert dict(zip(head, row, strict=True))["name"] == "'=cmd()"
        [line] = (await exported(service, ME, "jsonl")).splitlines()
        facts = json.loads(line)
        assert (facts["session"], facts["platform"], facts["outcome"]) == (mine, "trial", "exited")
        assert facts["wait"] >= 0


async def test_only_oneself_or_an_operator_erases_and_the_audit_log_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=TRIAL) as service:
        await run_one(service, ME)
        with pytest.raises(OperatorsOnly):
            await service.archive.erase(OTHER, "me")
        assert (await service.archive.erase(ME)).records == 1
        assert (await service.archive.page(ME, ALL))[0] == []
        [kept], _ = await service.archive.page(OPERATOR, ALL)
        assert (kept.person, kept.name) == ("", "")
        entries = await service.store.read(lambda tx: tx.audit.list(action="archive.forget"))
        assert [(entry.person, entry.detail["records"]) for entry in entries] == [("me", 1)]
