"""The data cache on a system behind SSH: below `kept/`, beside the files that many sessions share (kept.py).

    kept/NAME/content    a file, or a directory of files, read-only, once it is complete
    kept/NAME/size, seal its size in bytes; when it was published
    kept/NAME/users/     as in keep.sh: the sessions for which the entry is protected
    kept/NAME/part…      what has been transferred so far
    kept/NAME/transfer   which transfer brings it, if an external transfer service does (data/tasks.py)
    kept/NAME/came       the system's own program has transferred all of it to part…, and it must be published
    kept/NAME/claim/     who transfers it, with a heartbeat (`beat`); if that stops, another process takes over

The system fetches by itself with `far/fetcher.py` or with its own program (`shell/tool.sh`), which outlive the
connection; other data is streamed to it. A session gets a hard link, or its own copy of data that it may change, so
that removing an entry takes nothing from the session.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from importlib.resources import files as resources
from typing import Any
from urllib.parse import urlsplit

from sublet.data.model.links import LinkedFiles
from sublet.data.model.roads import CachedItem, choose_evictions
from sublet.data.model.tools import ToolPlan
from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.kernel.path_texts import restore_path
from sublet.kernel.streams import closing
from sublet.platforms.batch.commands import to_incoming
from sublet.platforms.batch.failures import Failures
from sublet.platforms.batch.kept import TRIED, KeptFiles, to_keep, to_kept
from sublet.platforms.batch.scripts import read_script, script
from sublet.platforms.batch.transfers import find_address
from sublet.platforms.caching import (
    CachePlacement,
    EntryMemory,
    EntryPhase,
    EntryState,
    FilePut,
    HostAway,
    NoPython,
    NoWay,
    describe_plan,
)
from sublet.platforms.claims import ServiceProcess
from sublet.reach.port import Command, Outcome, Reach, as_is
from sublet.reach.pouring import pour

NO_PYTHON = 69  # exit code of a script that found no Python
NOT_WHOLE = 65  # exit code of scripts that found unexpected content
COPYING = 3600  # seconds to copy or check large data
BEGUN = "part.file.begun"  # files of a folder that the system's own program has not fetched completely
ALONE = "part.file.sublet-part"  # what has been transferred of a single-file entry
MOVED = "moved"  # what a transfer service writes, until it is complete
FAR = "sublet.platforms.batch.far"
TRAVELS = ("sources.py", "fetcher.py")
PLUGIN = (*TRAVELS, "asked.py", "plugin.py")  # serves the addresses that jobs name
NEAR_PLUGIN = ("asked.py", "near_plugin.py")  # the same for nodes behind a spool
BEGINS = '\nif __name__ == "__main__":'


@dataclass
class FarCache:
    """The data cache on one system."""

    failures: Failures
    reach: Reach
    root: str
    owner: str
    kept: KeptFiles
    quota: int  # bytes; 0: none
    rate: int  # limit in bytes a second, each for transfers to and from the system; 0: none
    why_not: str = ""  # why the system may not fetch by itself
    host: str = ""  # the host that fetches, if it isn't the login host
    collection: str = ""  # the system's own Globus collection
    collection_root: str = "/"  # the directory that the collection exposes
    memory: EntryMemory = field(default_factory=EntryMemory)
    is_here: bool = False
    no_way: dict[str, tuple[float, str]] = field(default_factory=dict)  # hosts → when, and why they can't be reached

    async def want(self, entry: str, user: str, label: str = "") -> EntryState:
        """Record that a session needs an entry and return its state, in one exec."""
        commands: list[Command[Any]] = [
            to_keep(self.failures, self.root, entry, user, self.owner, label),
            self._to_look(entry),
        ]
        state: EntryState = (await self.reach.run_all(commands))[1]
        return self._note(entry, state)

    async def look(self, entry: str) -> EntryState:
        """Return an entry's current state."""
        return self._note(entry, await self.reach.run(self._to_look(entry)))

    def _note(self, entry: str, state: EntryState) -> EntryState:
        self.memory.note(entry, state.phase is EntryPhase.THERE, time.monotonic())
        return state

    async def list_there(self, entries: Collection[str]) -> Collection[str]:
        """Return which entries are there; those not checked recently are asked for in one exec."""
        now = time.monotonic()
        if unknown := sorted(entry for entry in entries if self.memory.recall(entry, now) is None):
            command = Command(script("entries", self.root, *unknown), self.failures.reading(str.split))
            there = await self.reach.run(command)
            for entry in unknown:
                self.memory.note(entry, entry in there, now)
        return [entry for entry in entries if self.memory.recall(entry, now)]

    def _to_look(self, entry: str) -> Command[EntryState]:
        return Command(script("entry", self.root, entry), self.failures.reading(read_entry))

    async def make_room(self, size: int) -> None:
        """Remove the least recently needed entries until this many more bytes fit in the quota."""
        if not self.quota:
            return
        entries = await self.reach.run(to_kept(self.failures, self.root, unfinished=True))
        items = [CachedItem(each.digest, each.size, each.used.timestamp(), bool(each.users)) for each in entries]
        if chosen := choose_evictions(items, size, self.quota):
            await self.kept.let_go(self.reach, self.root, chosen, idle=timedelta(0))
            self.memory.forget()

    async def fetch(self, entry: str, files: LinkedFiles, *, public_only: bool, largest: int) -> None:
        """Start the fetcher on the login host or on the data transfer host."""
        self._check_way({link.host for link in files.links})
        plan = json.dumps(describe_plan(files, public_only=public_only, largest=largest, rate=self.rate))
        await self._start(entry, read_program(), plan)

    async def fetch_by(self, entry: str, plan: ToolPlan, *, largest: int) -> None:
        """Start the system's own program, under a script that watches it, on the login or data transfer host."""
        self._check_way({plan.host})
        await self._start(
            entry, read_tool(plan.script or plan.tool), describe_tool_plan(plan, largest, self.rate), plan.tool
        )

    async def _start(self, entry: str, program: bytes, plan: str, tool: str = "") -> None:
        """Start a fetching program without waiting for its end; raise NoWay if the system can't run it."""
        words = self._beside(script("fetch", self.root, entry, str(len(program)), tool))
        stdin = program + plan.encode("utf-8", "surrogateescape")
        outcome = await self.reach.run(Command(words, as_is, stdin))
        if outcome.code:
            raise NoWay(outcome.complaint)
        if outcome.text.strip() != "started":
            raise NoWay(f"it has no {tool}") if tool else NoPython("it has no Python that could fetch")

    def note_no_way(self, host: str, why: str) -> None:
        """Remember for a while that the system can't reach a host."""
        now = time.monotonic()
        self.no_way = {other: known for other, known in self.no_way.items() if now - known[0] < TRIED}
        self.no_way[host] = (now, why)

    async def send(self, directory: str, puts: Sequence[FilePut], *, public_only: bool) -> None:
        """Have the login host or the data transfer host upload files; raise NoWay if it can't."""
        hosts = {urlsplit(put.url).netloc for put in puts}
        self._check_way(hosts)
        plan = {
            "public": public_only,
            "rate": self.rate,
            "puts": [asdict(put) | {"path": restore_path(put.path)} for put in puts],
        }
        words = self._beside(script("send", directory, read_program("sources.py", "sender.py").decode()))
        try:
            outcome = await self.reach.run(Command(words, as_is, json.dumps(plan).encode(), seconds=COPYING))
        except PlatformUnreachable as error:
            raise NoWay(error.message) from error
        answer = _read_failure(outcome.text) if not outcome.code else {"kind": "failed", "why": outcome.complaint}
        if answer.get("kind") == "unreachable":
            for host in hosts:
                self.note_no_way(host, str(answer.get("why")))
        if answer.get("kind") != "sent":
            raise NoWay(str(answer.get("why") or "what sends there ended early"))

    def _check_way(self, hosts: Collection[str]) -> None:
        """Raise NoWay if the system may not reach other hosts, or recently failed to reach one of these."""
        if self.why_not:
            raise NoWay(self.why_not)
        for host in hosts:
            when, why = self.no_way.get(host, (0.0, ""))
            if why and time.monotonic() - when < TRIED:
                raise HostAway(why, host)

    def _beside(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """Wrap a command to run on the data transfer host, if that isn't the login host."""
        if not self.host:
            return words
        return ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", self.host, shlex.join(words))

    async def claim(self, entry: str) -> Mapping[str, int] | None:
        """Claim the transfer of an entry and return the sizes so far; take over from a dead process of this machine."""
        words = script("claim", self.root, entry, str(ServiceProcess.here()))
        word, sizes = await self.reach.run(Command(words, self.failures.reading(read_claim)))
        if sizes is None and ServiceProcess.is_dead(word):
            _, sizes = await self.reach.run(Command((*words, "take"), self.failures.reading(read_claim)))
        return sizes

    async def measure(self, entry: str) -> Mapping[str, int]:
        """Return the sizes of an entry's files that have arrived so far."""
        words = script("claim", self.root, entry, "", "look")
        return (await self.reach.run(Command(words, self.failures.reading(read_claim))))[1] or {}

    async def write(self, entry: str, path: str, offset: int, pieces: AsyncIterator[bytes]) -> None:
        """Stream the pieces into a file there, from an offset."""
        place = f"part/{path}" if path else ALONE

        def to_write(at: int) -> tuple[str, ...]:
            return script("pour", self.root, entry, str(at), place)

        self._check(await pour(self.reach, to_write, offset, limit_rate(pieces, self.rate)))

    async def unpack(self, entry: str, archive: AsyncIterator[bytes]) -> None:
        """Stream an archive into tar there."""
        pieces = limit_rate(archive, self.rate)
        self._check(await pour(self.reach, lambda _: script("unpack", self.root, entry), 0, pieces, whole=True))

    async def unpack_archive(self, entry: str, target: str) -> None:
        """Unpack one entry as the content of another, with the same unpacker that runs here."""
        program = resources(FAR).joinpath("unpacker.py").read_bytes()
        outcome = await self.reach.run(
            Command(script("spread", self.root, entry, target), as_is, program, seconds=COPYING)
        )
        if outcome.code == NO_PYTHON:
            raise NoWay("it has no Python that could unpack")
        self._check(outcome)

    async def copy_own(self, entry: str, path: str, *, is_folder: bool) -> None:
        """Copy a file or folder of the system as the content of an entry."""
        words = script("copy", self.root, entry, path, "part" if is_folder else ALONE)
        self._check(await self.reach.run(Command(words, as_is, seconds=COPYING)))

    async def publish(self, entry: str, files: LinkedFiles) -> None:
        """Check an entry's size and checksums there, and make it available."""
        checksum = "" if files.is_folder else files.links[0].checksum.lower()
        kind, _, digits = checksum.partition(":")
        size = "" if files.size is None or not files.links else str(files.size)
        form, count = "folder" if files.is_folder else "file", str(len(files.links) or "")
        words = script("publish", self.root, entry, form, count, size, kind, digits)
        sums = [(*link.checksum.lower().split(":", 1), link.path) for link in files.links if link.checksum]
        stdin = "".join(f"{' '.join(line)}\n" for line in sums).encode("utf-8", "surrogateescape")
        self._check(await self.reach.run(Command(words, as_is, stdin if files.is_folder else b"", seconds=COPYING)))

    async def give_up(self, entry: str, *, drop: bool = False) -> None:
        """Release the claim on an entry; `drop` also deletes the part received so far."""
        parts = ["claim", "part", MOVED, ALONE, BEGUN] if drop else ["claim"]
        words = ("rm", "-rf", "--", *(f"{self.root}/kept/{entry}/{part}" for part in parts))
        await self.reach.run(Command(words, as_is))

    async def place(self, user: str, placements: Sequence[CachePlacement]) -> None:
        """Link read-only entries and copy writable ones into a session's directory, in one exec."""
        words = [
            word
            for placement in placements
            for word in (placement.entry, placement.target, "copy" if placement.is_writable else "link")
        ]
        if words:
            command = Command(script("lay", self.root, user, *words), as_is, seconds=COPYING)
            self._check(await self.reach.run(command))

    async def take(self, user: str, session: str, files: Sequence[tuple[str, str]], placement: CachePlacement) -> None:
        """Link or copy another session's results into this session's directory; names with newlines are refused."""
        lines = [line for path, place in files for line in (restore_path(path), restore_path(place))]
        if any("\n" in line for line in lines):
            raise PlatformRefused("It has a file whose name can't be used there.")
        how = "copy" if placement.is_writable else "link"
        await self.reach.run(to_incoming(self.failures, self.root, user, self.owner))
        words = script("take", self.root, user, session, placement.target, how)
        stdin = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
        self._check(await self.reach.run(Command(words, as_is, stdin, seconds=COPYING)))

    def find_content(self, entry: str) -> str:
        """Return the path of an entry's content."""
        return f"{self.root}/kept/{entry}/content"

    async def leave(self, user: str) -> Sequence[str]:
        """Release the entries of a session that wasn't submitted; return the notes on transfers no longer needed."""
        return (await self.reach.run(Command(script("leave", self.root, user), as_is))).text.splitlines()

    def find_collection(self, entry: str, *, is_folder: bool) -> str:
        """Return the entry's address in the system's Globus collection, if the collection exposes the cache."""
        address = find_address(self.collection, self.collection_root, f"{self.root}/kept/{entry}/{MOVED}")
        return f"{address}{'/' if is_folder else ''}"

    async def accept_moved(self, entry: str, *, is_folder: bool) -> None:
        """Take what the transfer service wrote as the entry's content; parts from another road are removed."""
        move = 'cd "$1" && rm -rf part part.file* && mv -T "$2" "$3"'
        words = ("sh", "-c", move, "sh", f"{self.root}/kept/{entry}", MOVED, "part" if is_folder else ALONE)
        self._check(await self.reach.run(Command(words, as_is)))

    async def read_note(self, entry: str) -> str:
        """Return the note on the transfer of an entry; empty if there is none."""
        words = ("sh", "-c", 'cat "$1" 2>/dev/null; exit 0', "sh", f"{self.root}/kept/{entry}/transfer")
        return (await self.reach.run(Command(words, self.failures.reading(str)))).strip()

    async def write_note(self, entry: str, text: str) -> None:
        """Write the note on a transfer atomically; an empty text removes it."""
        write = 'umask 077; if [ -n "$2" ]; then cat >"$1.new" && mv "$1.new" "$1"; else rm -f "$1"; fi'
        words = ("sh", "-c", write, "sh", f"{self.root}/kept/{entry}/transfer", "write" if text else "")
        self._check(await self.reach.run(Command(words, as_is, f"{text}\n".encode())))

    async def beat(self, entry: str) -> None:
        """Send a heartbeat for a claimed entry."""
        self._check(await self.reach.run(Command(("touch", "--", f"{self.root}/kept/{entry}/claim/beat"), as_is)))

    def _check(self, outcome: Outcome) -> None:
        if outcome.code == NOT_WHOLE:
            raise PlatformRefused(outcome.complaint)
        if outcome.code:
            raise self.failures.explain(outcome)


async def limit_rate(pieces: AsyncIterator[bytes], rate: int) -> AsyncIterator[bytes]:
    """Yield the same pieces, at most `rate` bytes a second; 0: no limit."""
    began, passed = time.monotonic(), 0
    async with closing(pieces) as pieces:
        async for piece in pieces:
            yield piece
            passed += len(piece)
            if rate and (ahead := passed / rate - (time.monotonic() - began)) > 0:
                await asyncio.sleep(ahead)


def read_entry(text: str) -> EntryState:
    """Read the output of `entry.sh`."""
    word, _, rest = text.strip().partition(" ")
    phase = EntryPhase(word)
    if phase is EntryPhase.FAILED:
        failure = _read_failure(rest)
        return EntryState(
            phase, kind=str(failure.get("kind", "failed")), why=str(failure.get("why", "it is not known why"))
        )
    numbers = [int(number) for number in rest.split()]
    return EntryState(phase, numbers[0] if numbers else 0, numbers[-1] if numbers else 0)


def _read_failure(text: str) -> dict[str, object]:
    try:
        failure: dict[str, object] = json.loads(text)
    except ValueError:  # truncated while it was being written
        return {}
    return failure


def read_claim(text: str) -> tuple[str, dict[str, int] | None]:
    """Read the output of `claim.sh`: another owner and None, or an empty owner and the sizes so far."""
    first, _, rest = text.partition("\n")
    word, _, owner = first.partition(" ")
    if word != "mine":
        return owner.strip(), None
    lines = (line.partition(" ") for line in rest.split("\0") if line)
    return "", {path: int(size) for size, _, path in lines}


def read_tool(name: str) -> bytes:
    """Return the script that fetches an entry with one of the system's programs."""
    return (read_script(name) + read_script("tool")).encode()


def describe_tool_plan(plan: ToolPlan, largest: int, rate: int) -> str:
    """Write the plan for such a script, one fact per line; it contains secrets.

    Raise NoWay if a value has a newline.
    """
    limits = [("total", str(plan.files.size or 0)), ("largest", str(largest)), ("rate", str(rate))]
    facts = [*limits, ("form", "folder" if plan.files.is_folder else "file"), *plan.facts]
    if any(letter in value for _, value in facts for letter in "\n\0"):
        raise NoWay("its address can't be told to a program there")
    return "".join(f"{name} {value}\n" for name, value in facts)


def read_program(*names: str) -> bytes:
    """Return the fetcher, or the program made of these files, as a single file that can be sent alone."""
    texts = [resources(FAR).joinpath(name).read_text() for name in names or TRAVELS]
    texts[:-1] = [text.partition(BEGINS)[0] for text in texts[:-1]]
    lines = "\n".join(texts).splitlines()
    kept = [line for line in lines if not line.startswith(("from __future__", "from sublet."))]
    return ("from __future__ import annotations\n" + "\n".join(kept) + "\n").encode()
