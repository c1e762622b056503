"""Whatever sentences say, or if they say nothing: a session's life goes the same way."""

from __future__ import annotations

import ast
import asyncio
import secrets
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import PrivateAttr

from sublet.apps.manifests.page import ManifestPage
from sublet.booking.logins import needs_login
from sublet.booking.model.drain import Drain
from sublet.booking.model.job import JobState
from sublet.booking.model.marks import Mark
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import EndKind, Session
from sublet.booking.store import rows
from sublet.booking.store import sessions as stored_sessions
from sublet.booking.store.events import EventStore
from sublet.kernel.errors import BadKey, LoginNeeded, PassphraseNeeded, SubletError
from sublet.kernel.ssh_keys import read_key
from sublet.people.model.person import Person
from sublet.platforms.memory.platform import MemoryPlatform
from sublet.service import Service
from tests.contract.services import KEEP, ME, ask, in_phase, over, reach, serving
from tests.source import PACKAGE, parse_source

pytestmark = pytest.mark.anyio

OWNER = Person("owner", operator=True)
LIE = (
    "paused: stopped; ends soon, at noon; unknown: no record of it; sublet system login moody; drained is being drained"
)
TEXTS: dict[str, Callable[[str], str]] = {
    "true": lambda text: text,
    "silent": lambda text: "",
    "lying": lambda text: LIE,
    "another each time": lambda text: secrets.token_hex(8),
}


class Moody(MemoryPlatform):
    """A platform that plays, forgets its jobs for a while, or wants a login; and what it says is not to be trusted."""

    _mood: str = PrivateAttr(default="")
    _texts: str = PrivateAttr(default="true")

    async def ask(self, ids: Sequence[str]) -> Mapping[str, JobState]:
        """How jobs are, as the mood is."""
        say = TEXTS[self._texts]
        if self._mood == "locked":
            raise LoginNeeded(say("Sign in to moody first."), hint=say("sublet system login moody"))
        states = {} if self._mood == "forgetful" else await super().ask(ids)
        return {id: replace(state, condition=say(state.condition)) for id, state in states.items()}


def scramble(patch: pytest.MonkeyPatch, say: Callable[[str], str]) -> None:
    """Let every sentence that is stored be another: conditions, how something ended, what happened, why a drain is."""
    stored, add, sentence = rows.to_stored, EventStore.add, Drain.sentence.fget
    assert sentence

    def store(name: str, value: Any) -> Any:
        if name == "end" and value is not None:
            value = replace(value, detail=say(value.detail))
        return stored(name, say(value) if name == "condition" else value)

    def note(
        self: EventStore, time: Any, session: str, person: str, kind: Any, detail: str = "", phase: str = ""
    ) -> None:
        add(self, time, session, person, kind, say(detail), phase)

    patch.setattr(stored_sessions, "to_stored", store)
    patch.setattr(EventStore, "add", note)
    patch.setattr(Drain, "sentence", property(lambda drain: say(sentence(drain))))


async def begin(service: Service, platform: str = "trial", **asked: Any) -> str:
    """Accept something there, and give its id."""
    mine = await ask(service, precedence=KEEP, cores=1, **asked)
    offer = next(one for one in mine.offers if one.offer.platform == platform)
    return (await service.sessions.accept(offer.id, ME)).id


async def look(service: Service, id: str) -> None:
    """Let the loop look at a session at once."""
    now = service.now()
    await service.store.write(lambda tx: tx.sessions.change(id, now=now, due=now))
    service.signals.nudged.set()


def marked(*marks: Mark) -> Callable[[Session], bool]:
    """Whether a session that runs has these marks, and no others."""
    return lambda session: session.phase is Phase.RUNNING and session.marks == frozenset(marks)


async def be_warned_and_paused(service: Service) -> str:
    """It is warned once, though it is paused and goes on meanwhile; with more time it is not any more."""
    id = await begin(service, time="8s")
    await reach(service, id, marked(Mark.WARNED))
    await service.pausing.pause(id, ME)
    await look(service, id)
    await reach(service, id, marked(Mark.WARNED, Mark.PAUSED))
    assert (await service.pausing.resume(id, ME))[0].paused is False
    await reach(service, id, marked(Mark.WARNED))
    await service.sessions.extend(id, ME, by="1h")
    await reach(service, id, marked())
    await service.sessions.cancel(id, ME)
    return id


async def be_lost_and_found(service: Service, platform: Moody) -> str:
    """It is lost, found, waits for a login, goes on, and is cancelled while it is lost again."""
    id = await begin(service, "moody", time="1h")
    await reach(service, id, marked())
    platform._mood = "forgetful"
    await look(service, id)
    assert (await reach(service, id, marked(Mark.LOST))).lost
    platform._mood = ""
    await look(service, id)
    assert (await reach(service, id, marked())).lost is None
    platform._mood = "locked"
    await look(service, id)
    assert needs_login(await reach(service, id, marked(Mark.LOGIN_NEEDED)))
    platform._mood = ""
    await look(service, id)
    assert not needs_login(await reach(service, id, marked()))
    platform._mood = "forgetful"
    await service.sessions.cancel(id, ME)
    await over(service, id)
    platform._mood = ""
    return id


async def be_held_back(service: Service) -> str:
    """It is to start while its platform is being drained, and does so afterwards."""
    start = service.now().replace(microsecond=0) + timedelta(seconds=3)
    window = f"{start.isoformat()}/{(start + timedelta(days=1)).isoformat()}"
    id = await begin(service, "drained", time="1h", start=window)
    await reach(service, id, in_phase(Phase.WAITING))
    await service.drains.drain(OWNER, "drained", reason="cooling")
    await reach(service, id, lambda session: session.marks == {Mark.HELD_BACK})
    await service.drains.undrain(OWNER, "drained")
    await reach(service, id, marked())
    await service.sessions.cancel(id, ME)
    return id


async def run(service: Service) -> str:
    """It runs to its end."""
    id = await begin(service, time="2s")
    await over(service, id)
    return id


BEGUN = ("accepted", "waiting", "preparing", "submitted", "running")
CANCELLED = ("cancel-asked", "ended", "cancelled")
LIFE = [
    [*BEGUN, "warned", "ended", "failed"],
    [*BEGUN, "warned", "paused", "resumed", "extended", *CANCELLED],
    [*BEGUN, "lost", "cancel-asked", "lost", "ended", "cancelled"],
    ["accepted", "waiting", "draining", *BEGUN[2:], *CANCELLED],
]


SENTENCES = frozenset({"message", "advice", "condition", "why", "detail", "sentence", "nearest", "remark"})
READING = frozenset({"startswith", "endswith", "removeprefix", "removesuffix", "replace", "partition", "rpartition"})
MATCHING = frozenset({"search", "match", "fullmatch", "findall", "finditer", "sub"})
# What only draws: a name is not printed twice, a clause loses its full stop; and a check that something is told at all.
DRAWN = {"booking/cli/asking.py", "booking/documents/request.py", "kernel/errors/error.py", "platforms/conformance.py"}
OLD_ROWS = "store/migrations/versions/"  # they read once what was written before there were marks


def reads_a_sentence(node: ast.AST) -> bool:
    """Whether it looks into, or changes, a sentence that something of ours carries."""
    if isinstance(node, ast.Compare):
        looked = any(isinstance(op, ast.In | ast.NotIn) for op in node.ops)
        return looked and isinstance(node.left, ast.Constant) and any(map(is_sentence, node.comparators))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in READING:
            return is_sentence(node.func.value)
        return node.func.attr in MATCHING and any(map(is_sentence, node.args))
    return False


def is_sentence(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in SENTENCES


def test_nothing_looks_into_a_sentence() -> None:
    found = [
        f"{file.relative_to(PACKAGE)}:{node.lineno}"
        for file, tree in parse_source().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.expr) and reads_a_sentence(node)
    ]
    assert [place for place in found if place.partition(":")[0] not in DRAWN and OLD_ROWS not in place] == []


def fail_to_read(place: Path) -> list[Any]:
    """What a key and two documents are refused by."""
    key = place / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", key], check=True)
    with pytest.raises(BadKey) as locked:
        read_key(key.read_text())
    page = ManifestPage.of("sublet.yaml", b"name: x\n\nname: y\n")
    json_page = ManifestPage.of("manifest.json", b'{"name": "x",\n\n"name": "y"}')
    return [type(locked.value), page.findings[0].line, json_page.findings[0].line]


@pytest.mark.parametrize("texts", TEXTS)
def test_what_is_refused_is_known_by_its_kind_whatever_the_error_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: str
) -> None:
    make = SubletError.__init__

    def say(self: SubletError, message: str = "", *, hint: str = "", **values: object) -> None:
        make(self, message, hint=hint, **values)
        self.message, self.advice = TEXTS[texts](self.message), TEXTS[texts](self.advice)

    monkeypatch.setattr(SubletError, "__init__", say)
    assert fail_to_read(tmp_path) == [PassphraseNeeded, 3, 3]


@pytest.mark.parametrize("texts", TEXTS)
async def test_a_life_goes_the_same_way_whatever_sentences_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: str
) -> None:
    scramble(monkeypatch, TEXTS[texts])
    names = ("trial", "moody", "drained")
    async with serving(tmp_path, platforms={name: {"kind": "memory", "takes": "1h"} for name in names}) as service:
        for name in names:
            service.platforms.by_name[name] = platform = Moody(name=name, takes="1h")
            platform._texts = texts
            await platform.open(tmp_path / "platforms" / name)
        moody = service.platforms.by_name["moody"]
        assert isinstance(moody, Moody)
        ids = await asyncio.gather(
            run(service), be_warned_and_paused(service), be_lost_and_found(service, moody), be_held_back(service)
        )
        ends = [(await over(service, id)).end for id in ids]
        events = [[one.kind for one in await service.events.events(ME, session=id)] for id in ids]
    kinds = [EndKind.TIMEOUT, EndKind.CANCELLED, EndKind.CANCELLED, EndKind.CANCELLED]
    assert [end and end.kind for end in ends] == kinds
    assert [[kind.removeprefix("session.") for kind in some if kind != "session.moved"] for some in events] == LIFE
