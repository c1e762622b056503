"""One session's directory here: what its virtual machine is given, what it reported, and how it ended.

work/, data/, storage/   staged data; after the end, the results
secret                   seals all messages between its machine and the service
asked                    before Nova is called: the name of the key pair that the call names;  id: of its server
heard.json               what its console has reported;  left/N: parts of the results;  left.tar.gz: all of them
door_key, known_hosts    the service's key, and the machine's host key;  address: where the machine is
sent                     marks that its files are there, if they were not in its user data
until, cancel, timeout   the moved end of its time; who cancelled it; that its time was over
"""

from __future__ import annotations

import json
import os
import tarfile
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sublet.booking.model.job import Job
from sublet.booking.model.session import End, Usage
from sublet.kernel.ssh_keys import make_key
from sublet.platforms.openstack.guest.sealed import read_lines
from sublet.platforms.packed_session import PackedSession
from sublet.platforms.sessiondir import moment

STREAMS = ("stdout", "stderr")
LEFT = "left.tar.gz"


@dataclass(frozen=True, slots=True)
class HeardConsole:
    """What a machine's console has reported."""

    began: float = 0.0  # when its program was started, by the machine's clock
    beat: int = 0  # the number of the last heartbeat
    at: float = 0.0  # when that was read here
    end: dict[str, Any] | None = None
    door: dict[str, Any] | None = None  # its host key, and the port of its sshd
    listens: bool = False  # whether its program accepts connections


class VmSession(PackedSession):
    """A session's local directory, with what is known of its virtual machine."""

    def lay_out(self, job: Job, output_limit: int, seconds: float, flavor: str, has_door: bool = False) -> None:
        """Write the program's files, and what must be known of the session later."""
        self.make()
        self.write_program(dict(job.program.files))
        if not self.read_note("secret"):
            self.note("secret", os.urandom(32).hex())
        if has_door and not self.read_note("door_key"):
            self._make_key()
        (self.root / "left").mkdir(mode=0o700, exist_ok=True)
        known = {
            "output_limit": output_limit,
            "seconds": seconds,
            "flavor": flavor,
            "connects": job.program.connects,
        }
        self.write_job({"mounts": self.volumes(job.mounts), **known})
        self.running.touch(0o600)

    def _make_key(self) -> None:
        private, public = make_key()
        self.note("door_key.pub", public)
        self.note("door_key", private)

    @property
    def secret(self) -> bytes:
        """The secret that seals all messages."""
        return bytes.fromhex(self.read_note("secret"))

    @property
    def is_submitted(self) -> bool:
        """Whether the session was submitted."""
        return self.read("job.json") is not None

    @property
    def heard(self) -> HeardConsole:
        """What the console has reported so far."""
        return HeardConsole(**(self.read("heard.json") or {}))

    @property
    def began(self) -> datetime | None:
        """When the program was started; not later than now, if the machine's clock is ahead."""
        began = self.heard.began
        return min(moment(began), datetime.now(UTC)) if began else None

    @property
    def until(self) -> datetime | None:
        """The end of the session's time, which is counted from its program's start; None if it hasn't begun."""
        if text := self.read_note("until"):
            return moment(float(text))
        began = self.began
        return began + timedelta(seconds=self.read("job.json")["seconds"]) if began else None

    def listen(self, console: str, now: float) -> HeardConsole:
        """Record what a console shows: heartbeats, output, and parts of the results."""
        before = heard = self.heard
        for label, content in read_lines(self.secret, console):
            kind, _, rest = label.partition(":")
            if kind in STREAMS:
                self._add_output(kind, int(rest.partition(":")[0]), content)
            elif kind == "left":
                self._keep_part(rest, content)
            elif kind == "began":
                heard = replace(heard, began=heard.began or float(json.loads(content)["at"]), at=heard.at or now)
            elif kind == "beat" and int(rest) > heard.beat:
                heard = replace(heard, beat=int(rest), at=now)
            elif kind == "end":
                heard = replace(heard, end=json.loads(content))
            elif kind == "door":
                heard = replace(heard, door=json.loads(content), at=heard.at or now)
            elif kind == "listens":
                heard = replace(heard, listens=True)
        if heard != before:
            self.write("heard.json", json.dumps(asdict(heard)).encode())
        return heard

    def _add_output(self, stream: str, offset: int, content: bytes) -> None:
        """Append output that follows what is here; gaps are filled at the end."""
        path = self.root / stream
        size = path.stat().st_size
        if offset <= size < offset + len(content):
            with path.open("ab") as file:
                file.write(content[size - offset :])

    def _keep_part(self, number: str, content: bytes) -> None:
        if number.isdigit() and not (self.root / "left" / number).exists():
            self.write(f"left/{number}", content)

    def count_missing(self, end: dict[str, Any]) -> int:
        """Return how many parts of the results aren't here."""
        if (self.root / LEFT).exists():
            return 0
        if end.get("fetched") and not end["pieces"]:
            return 1
        return sum(not (self.root / "left" / str(number)).exists() for number in range(int(end["pieces"])))

    def unpack_left(self, end: dict[str, Any]) -> dict[str, str]:
        """Put the results in place; return what a kind's own program wrote about the end."""
        brought: dict[str, list[int]] = self.read("brought.json") or {}
        notes: dict[str, str] = {}
        self._join_parts(int(end["pieces"]))
        if not (self.root / LEFT).exists():
            return notes
        with tarfile.open(self.root / LEFT, mode="r|gz") as opened:
            for member in opened:
                file = opened.extractfile(member) if member.isreg() else None
                if member.name in ("unstarted", "detail") and file:
                    notes[member.name] = file.read(10_000).decode("utf-8", "replace")
                else:
                    self.put_member(member, file, brought)
        self.remove_empty_parents()
        (self.root / LEFT).unlink()
        return notes

    def _join_parts(self, count: int) -> None:
        """Join the parts that came by the console into one archive, unless the whole archive is here."""
        if not count or (self.root / LEFT).exists():
            return
        with (self.root / f"{LEFT}.part").open("wb") as joined:
            for number in range(count):
                joined.write((self.root / "left" / str(number)).read_bytes())
        (self.root / f"{LEFT}.part").rename(self.root / LEFT)

    def finish(self, end: End) -> None:
        """Record how the session ended; the first record stands."""
        now = datetime.now(UTC)
        began = self.began or now
        usage = end.usage or Usage(wall=max(0.0, (now - began).total_seconds()) if self.began else 0.0)
        ended = began + timedelta(seconds=usage.wall) if end.usage else now
        self.settle(replace(end, usage=usage), began.timestamp(), ended.timestamp())
