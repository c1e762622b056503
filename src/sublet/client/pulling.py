"""A site that pulls requests for leases: over HTTPS with a pinned key, by the same script that its nodes use."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from shlex import quote, split

from sublet.kernel.errors import BadInvitation, PilotRefused, ServiceUnreachable, SubletError, UnsafeDirectory
from sublet.kernel.safe_paths import find_danger_above

ASK = '. ./values; . ./ask.sh; ask "$1" said answer; code=$?; printf "%s\\n" "$words"; exit "$code"'
REFUSED = 2
NEEDED = ("site", "urls", "pin", "token")
RUN = "run.sh"


@dataclass(frozen=True)
class PulledRequest:
    """A request for a lease that no site has taken yet."""

    key: str
    nodes: int
    cores: int  # per node
    memory: int  # MiB per node
    gpus: int  # per node
    seconds: int

    @property
    def fits_here(self) -> bool:
        """Whether this machine alone can provide the lease."""
        return self.nodes == 1 and self.cores <= (os.cpu_count() or 1)

    def fill(self, words: Sequence[str]) -> list[str]:
        """Return a command with `{nodes}` and the other amounts filled in."""
        amounts = {
            "nodes": self.nodes,
            "cores": self.cores,
            "memory": self.memory,
            "gpus": self.gpus,
            "minutes": -(-self.seconds // 60) + 2,
        }
        filled = list(words)
        for name, amount in amounts.items():
            filled = [word.replace(f"{{{name}}}", str(amount)) for word in filled]
        return filled


class Pulling:
    """A site's connection to the service that invited it."""

    def __init__(self, invitation: str) -> None:
        """Read an invitation from a file; raise BadInvitation if it is malformed."""
        self._text = _read(invitation)
        self._values = read_invitation(self._text)
        self.site = self._values["site"]

    def list_wanted(self) -> list[PulledRequest]:
        """Return the requests that no site has taken yet, oldest first."""
        lines = self._ask("wanted").decode().splitlines()
        return [PulledRequest(words[0], *map(int, words[1:6])) for words in map(str.split, lines) if len(words) >= 6]

    def start(self, request: PulledRequest, directory: str, words: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Take a request and start its lease: here or, with `words`, by a command that has to succeed."""
        place = self._take(request, directory)
        script = [os.path.join(place, RUN), place]
        if not words:
            return subprocess.Popen(["sh", *script], stdin=subprocess.DEVNULL, start_new_session=True)
        command = subprocess.Popen([*request.fill(words), *script], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        complaint = command.communicate()[1].decode(errors="replace").strip()
        if command.returncode:
            shutil.rmtree(place, ignore_errors=True)
            self._note_failure(request, f"{words[0]}: {complaint or command.returncode}")
            raise SubletError(f"{words[0]} did not take it: {complaint or command.returncode}", hint="Change COMMAND.")
        return command

    def _take(self, wanted: PulledRequest, directory: str) -> str:
        """Take a request; return a new directory with everything that is needed to run it."""
        os.makedirs(directory, mode=0o700, exist_ok=True)
        why = find_danger_above(os.path.join(directory, "lease"))
        if why:
            raise UnsafeDirectory(place=directory, why=why)
        answer = self._ask("take", request=wanted.key, nonce=secrets.token_hex(16))
        place = tempfile.mkdtemp(prefix="lease-", dir=directory)
        request = {"request": wanted.key, "cores": wanted.cores, "memory": wanted.memory}
        _write(place, "request", "".join(f"{name}={quote(str(value))}\n" for name, value in request.items()))
        _write(place, "invitation", self._text)
        _write(place, RUN, _script("pulled"), 0o700)
        subprocess.run(["tar", "xf", "-"], cwd=place, input=answer, check=True)
        return place

    def _note_failure(self, request: PulledRequest, words: str) -> None:
        """Report that the lease could not be started."""
        self._ask("ended", request=request.key, code="127", words=f"pilot: 0 on {self.site}: {' '.join(words.split())}")

    def _ask(self, what: str, **fields: str) -> bytes:
        with tempfile.TemporaryDirectory(prefix="sublet-pull-") as scratch:
            values = {"token": self._values["token"], **fields}
            _write(scratch, "said", "".join(f"{name}={value}\n" for name, value in values.items()))
            _write(scratch, "values", self._text)
            _write(scratch, "ask.sh", _script("ask"))
            path = f"/sites/{self.site}/{what}"
            done = subprocess.run(["sh", "-c", ASK, "sh", path], cwd=scratch, capture_output=True, text=True)
            words = done.stdout.strip()
            if done.returncode == REFUSED:
                raise PilotRefused(words or "It was refused.", hint="Ask who invited you for a new invitation.")
            if done.returncode:
                raise ServiceUnreachable(address=self._values["urls"], why=words)
            answer = os.path.join(scratch, "answer")
            with open(answer, "rb") if os.path.exists(answer) else open(os.devnull, "rb") as file:
                return file.read()


def read_invitation(text: str) -> dict[str, str]:
    """Parse an invitation; raise BadInvitation if a value is missing."""
    values = {}
    for line in text.splitlines():
        name, mark, value = line.partition("=")
        try:
            words = split(value)
        except ValueError:
            raise BadInvitation() from None
        if mark and name in NEEDED:
            values[name] = " ".join(words)
    if set(values) != set(NEEDED) or not all(values.values()):
        raise BadInvitation()
    return values


def write_invitation(site: str, urls: Sequence[str], pin: str, token: str) -> str:
    """Return the text of an invitation file."""
    values = {"site": site, "urls": " ".join(urls), "pin": pin, "token": token}
    return "".join(f"{name}={quote(value)}\n" for name, value in values.items())


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInvitation(f"The invitation {path} can't be read: {error}") from error


def _script(name: str) -> str:
    return files("sublet").joinpath("kinds", "inside", "pilot", f"{name}.sh").read_text()


def _write(place: str, name: str, text: str, mode: int = 0o600) -> None:
    with open(os.open(os.path.join(place, name), os.O_WRONLY | os.O_CREAT, mode), "w", encoding="utf-8") as file:
        file.write(text)
