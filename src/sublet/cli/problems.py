"""Shows errors: in words, or as JSON with --json."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from sublet.cli.output import say
from sublet.cli.screen import paint
from sublet.kernel.errors import SubletError


class Problem:
    """An error to show: what went wrong, what to do, and the exit code."""

    def __init__(self, detail: str, hint: str, exit_code: int, code: str = "usage", status: int = 400) -> None:
        """Describe an error of a call, or of the command line itself."""
        self.detail, self.hint, self.exit_code, self.code, self.status = detail, hint, exit_code, code, status
        self.errors: list[Any] = []  # the individual mistakes, if there are several

    @classmethod
    def from_error(cls, error: SubletError) -> Problem:
        """Return the problem for a SubletError."""
        made = cls(error.message, error.advice, error.exit_code, error.code, error.status)
        errors = error.values.get("errors")
        made.errors = errors if isinstance(errors, list) else []
        return made

    def show(self, *, as_json: bool) -> int:
        """Write the problem to stderr, and return the exit code."""
        if as_json:
            click.echo(self._json(), err=True)
        else:
            say(f"{paint('error:', 'red', sys.stderr)} {self.detail}")
            if self.hint:
                say(f"\nhint: {self.hint}")
        return self.exit_code

    def _json(self) -> str:
        """Return the problem as RFC 9457 JSON, like the API's, on one line: the last one of stderr."""
        import json  # only when something went wrong

        members = {"type": f"urn:sublet:problem:{self.code}", "code": self.code, "status": self.status}
        members |= {"detail": self.detail, "hint": self.hint, "exit_code": self.exit_code}
        return json.dumps(members | ({"errors": self.errors} if self.errors else {}), ensure_ascii=False, default=str)


def wants_json(words: Sequence[str]) -> bool:
    """Whether --json was typed, not counting the words after --."""
    ours = words[: words.index("--")] if "--" in words else words
    return "--json" in ours
