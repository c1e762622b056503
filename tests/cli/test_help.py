"""Help: every command has it, and it ends in an example that can be typed."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from sublet.cli.app import COMMANDS, SECTIONS, cli
from sublet.cli.command import DefaultGroup
from tests.cli.conftest import Type

HEAVY = {"asyncio", "pydantic", "httpx2", "fastapi", "rich", "yaml", "email", "http.client", "ssl", "sqlalchemy"}
LOADED_LATER = {"urllib.parse", "ipaddress", "string"}  # by those who need them: an address, an error
OF_A_COMMAND = {"json", "dataclasses"}


def walk(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from walk(child, (*path, name))


ALL = dict(walk(cli))


@pytest.mark.parametrize("path", ALL, ids=lambda path: " ".join(path) or "sublet")
def test_help_says_what_it_does_and_ends_in_an_example(path: tuple[str, ...], type_in: Type) -> None:
    typed = type_in(*path, "--help")
    assert (typed.code, typed.err) == (0, "")
    lines = typed.out.rstrip().splitlines()
    example = lines[max(i for i, line in enumerate(lines) if line.strip() == "Example:") + 1 :]
    assert example
    assert all("sublet" in line for line in example)
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("path", ALL, ids=lambda path: " ".join(path) or "sublet")
def test_every_command_takes_json_and_quiet(path: tuple[str, ...]) -> None:
    options = {option for parameter in ALL[path].params for option in parameter.opts}
    assert {"--json", "--quiet", "--verbose"} <= options


def test_the_table_of_commands_says_what_the_commands_are() -> None:
    for name, (_, line) in COMMANDS.items():
        assert ALL[(name,)].name == name
        assert line.endswith(".")


def test_sublet_alone_shows_the_help_in_sections(type_in: Type) -> None:
    typed = type_in()
    assert typed.code == 0
    assert all(f"{section}:" in typed.out for section in SECTIONS)


def test_the_version_is_told(type_in: Type) -> None:
    typed = type_in("--version")
    assert typed.code == 0
    assert typed.out.startswith("sublet 0.")


def test_a_mistyped_command_is_suggested(type_in: Type) -> None:
    typed = type_in("logz")
    assert (typed.code, typed.out) == (2, "")
    assert (
        typed.err
        == "error: There is no command logz. Did you mean logs?\n\nhint: `sublet --help` shows what can be typed.\n"
    )


def test_an_option_without_its_value_leads_to_the_help_of_its_command(type_in: Type) -> None:
    typed = type_in("run", "--interactive")
    assert typed.code == 2
    assert typed.err.endswith("requires an argument.\n\nhint: `sublet run --help` shows what can be typed.\n")


@pytest.mark.parametrize(
    ("words", "heavy"),
    [("--help", HEAVY | LOADED_LATER | OF_A_COMMAND), ("ps --help", HEAVY | LOADED_LATER)],
)
def test_help_loads_nothing_heavy(words: str, heavy: set[str]) -> None:
    code = f"import sys; from sublet.cli.app import run; run({words.split()!r}); print(*sys.modules, file=sys.stderr)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not heavy & set(said.stderr.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(shell: str, type_in: Type) -> None:
    typed = type_in("completion", shell)
    assert typed.code == 0
    assert "_SUBLET_COMPLETE" in typed.out


def typed_in(line: str) -> list[str]:
    """The words of an example after `sublet`, up to where the shell takes over."""
    words = shlex.split(line)[1:]
    return words[: next((i for i, word in enumerate(words) if word.startswith(("<", ">", "|", "&"))), len(words))]


EXAMPLES = [
    line.strip() for one in ALL.values() for line in str(one.epilog).splitlines() if line.startswith("  sublet ")
]


def test_every_example_can_be_typed_as_it_stands() -> None:
    wrong = []
    for line in EXAMPLES:
        words = typed_in(line)
        command: click.Command = cli
        try:
            while isinstance(command, click.Group) and words:
                found = command.get_command(click.Context(command), words[0])
                if found is None and isinstance(command, DefaultGroup):
                    found, words = command.commands[command.default], ["", *words]
                assert found, line
                command, words = found, words[1:]
            if not isinstance(command, click.Group):
                command.make_context("example", words)
        except click.ClickException as error:
            if "does not exist" not in error.format_message():  # files that it names are the reader's
                wrong.append(f"{line}: {error.format_message()}")
    assert wrong == []


@pytest.mark.parametrize("path", [path for path, command in ALL.items() if isinstance(command, click.Group)], ids=str)
def test_a_group_shows_each_of_its_commands_in_a_whole_sentence(path: tuple[str, ...], type_in: Type) -> None:
    listed = type_in(*path, "--help").out.partition("\nCommands:\n")[2]
    assert path == () or listed
    assert "..." not in listed
