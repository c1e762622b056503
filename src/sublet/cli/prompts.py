"""Prompts on the terminal; if standard input ends instead, an error says what to do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from sublet.cli.screen import is_terminal
from sublet.kernel.errors import NoAnswer

T = TypeVar("T")
LOOK_EVERY = 0.3  # seconds


def ask_for(question: str, how: str, **options: Any) -> str:
    """Prompt for a text; `how` is the hint if nobody can answer."""
    return str(_ask_person(lambda: click.prompt(question, err=True, **options), question, how))


def ask_yes_or_no(question: str, how: str, *, default: bool | None = False) -> bool:
    """Prompt for yes or no."""
    return _ask_person(lambda: click.confirm(question, default=default, err=True), question, how)


def ask_meanwhile(question: str, choices: Sequence[str], default: str, is_settled: Callable[[], bool]) -> str | None:
    """Prompt for one of the choices; return None if `is_settled` becomes true before an answer."""
    import select  # only needed here

    while True:
        click.echo(f"{question} ({', '.join(choices)}) [{default}]: ", nl=False, err=True)
        while not select.select([sys.stdin], [], [], LOOK_EVERY)[0]:
            if is_settled():
                click.echo(err=True)
                return None
        line = sys.stdin.readline()
        if not line:
            click.echo(err=True)
            raise click.Abort
        answer = line.strip() or default
        if answer in choices:
            return answer
        click.echo(f"Type {' or '.join(choices)}.", err=True)


def _ask_person(ask: Callable[[], T], question: str, how: str) -> T:
    try:
        answer = ask()
    except click.Abort as abort:
        if not isinstance(abort.__context__, EOFError):  # Ctrl-C needs no explanation
            raise
        click.echo(err=True)
        raise NoAnswer(question=question.strip().rstrip("?:"), hint=how) from None
    if not is_terminal(sys.stdin):  # no Enter was typed to end the question's line
        click.echo(err=True)
    return answer
