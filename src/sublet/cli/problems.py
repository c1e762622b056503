"""How errors are shown: in words, or as JSON to those who asked for JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from sublet.cli.output import say
from sublet.cli.screen import paint
from sublet.kernel.errors import SubletError


class Problem:
    """What went wrong, what to do about it, and the exit code that says so."""

    def __init__(self, detail: str, hint: str, exit_code: int, code: str = "usage", status: int = 400) -> None:
        """In the words of an error, or of the command line itself."""
        self.detail, self.hint, self.exit_code, self.code, self.status = detail, hint, exit_code, code, status
        self.errors: list[Any] = []  # each mistake by itself, where there are several

    @classmethod
    def from_error(cls, error: SubletError) -> Problem:
        """The problem that one of our errors is."""
        made = cls(error.message, error.advice, error.exit_code, error.code, error.status)
        errors = error.values.get("errors")
        made.errors = errors if isinstance(errors, list) else []
        return made

    def show(self, *, as_json: bool) -> int:
        """Write it to stderr, and return the exit code."""
        if as_json:
            click.echo(self._json(), err=True)
        else:
            say(f"{paint('error:', 'red', sys.stderr)} {self.detail}")
            if self.hint:
                say(f"\nhint: {self.hint}")
        return self.exit_code

    def _json(self) -> str:
        """The members of an RFC 9457 problem, as over HTTP, in one line: the last of stderr."""
        import json  # only when something went wrong

        members = {"type": f"urn:sublet:problem:{self.code}", "code": self.code, "status": self.status}
        members |= {"detail": self.detail, "hint": self.hint, "exit_code": self.exit_code}
        return json.dumps(members | ({"errors": self.errors} if self.errors else {}), ensure_ascii=False, default=str)


def wants_json(words: Sequence[str]) -> bool:
    """Whether --json was typed; what stands after -- is somebody else's."""
    ours = words[: words.index("--")] if "--" in words else words
    return "--json" in ours
