"""Passes ssh's questions to a callback; an answer never appears in a file or in the process list."""

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
_MOST = 1 << 16  # bytes of a question, which is a few lines
_HOST_KEY = ("The authenticity of host", "Please type 'yes'")  # ssh's own; a centre's questions start with (user@host)
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


@dataclass(frozen=True)
class Prompt:
    """One question of ssh or of the centre, verbatim."""

    text: str
    secret: bool  # whether the answer must be hidden while it is typed

    @property
    def host_key(self) -> bool:
        """Whether the prompt asks to confirm a host's fingerprint: with `yes`, or with the fingerprint itself."""
        return not self.secret

    @property
    def fingerprint(self) -> str:
        """The fingerprint in the prompt, or an empty string."""
        match = _FINGERPRINT.search(self.text)
        return match[0] if match else ""


Prompter = Callable[[Prompt], Awaitable[str | None]]  # None: the person doesn't answer, and the login is cancelled


async def nobody(prompt: Prompt) -> str | None:
    """Give no answer: for a service account, which signs in with a key or a certificate only."""
    return None


@contextlib.asynccontextmanager
async def answering(prompter: Prompter, within: Path) -> AsyncIterator[dict[str, str]]:
    """Answer ssh's questions with `prompter`; yield the environment variables that make ssh ask it, not a terminal."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        text = os.fsdecode(await reader.read(_MOST))
        answer = await prompter(Prompt(text, secret=not text.startswith(_HOST_KEY)))
        if answer is not None:
            writer.write(askpass.ANSWERED + os.fsencode(answer))
            await writer.drain()

    with tempfile.TemporaryDirectory(prefix="ask-", dir=within) as name:  # created with mode 0700
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
                "DISPLAY": os.environ.get("DISPLAY", ":0"),  # without it, an ssh older than 8.4 doesn't ask at all
                askpass.SOCKET: str(path),
            }
