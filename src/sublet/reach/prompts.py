"""ssh's questions, passed to a program as they are; no answer is ever in a file or in a list of processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from sublet.reach import askpass
from sublet.reach.listening import listening

_HELPER = Path(askpass.__file__).resolve()
_MOST = 1 << 16  # a question is a few lines
_HOST_KEY = ("The authenticity of host", "Please type 'yes'")  # ssh's own; a centre's questions start with (user@host)
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


@dataclass(frozen=True)
class Prompt:
    """One question of ssh or of the centre, word for word."""

    text: str
    secret: bool  # the answer is not to be shown while it is typed

    @property
    def host_key(self) -> bool:
        """Whether it shows a host's fingerprint and asks to confirm it: `yes`, or the fingerprint itself."""
        return not self.secret

    @property
    def fingerprint(self) -> str:
        """The fingerprint that it shows, if it shows one."""
        match = _FINGERPRINT.search(self.text)
        return match[0] if match else ""


Prompter = Callable[[Prompt], Awaitable[str | None]]  # None: the person doesn't answer, and the login is given up


async def nobody(prompt: Prompt) -> str | None:
    """Answers nothing: for a service account, which gets in by a key or a certificate alone."""
    return None


@contextlib.asynccontextmanager
async def answering(prompter: Prompter, within: Path) -> AsyncIterator[dict[str, str]]:
    """Answer with `prompter`; yields the variables that make ssh ask there instead of in a terminal."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        text = os.fsdecode(await reader.read(_MOST))
        answer = await prompter(Prompt(text, secret=not text.startswith(_HOST_KEY)))
        if answer is not None:
            writer.write(askpass.ANSWERED + os.fsencode(answer))
            await writer.drain()

    with tempfile.TemporaryDirectory(prefix="ask-", dir=within) as name:  # it is made 0700
        directory = Path(name)
        helper = directory / "askpass"
        path = directory / "s"
        words = shlex.join([sys.executable, "-I", "-S", str(_HELPER)])
        helper.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        helper.chmod(0o700)
        async with listening(path, serve):
            yield {
                "SSH_ASKPASS": str(helper),
                "SSH_ASKPASS_REQUIRE": "force",
                "DISPLAY": os.environ.get("DISPLAY", ":0"),  # without one, an ssh older than 8.4 doesn't ask at all
                askpass.SOCKET: str(path),
            }
