"""The recording in the docs is of a terminal of 80 columns, shows no machine, and its commands still exist."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import click
import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "recordings"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def recorder() -> ModuleType:
    """The script that records."""
    loader = SourceFileLoader("recorder", str(ROOT / "scripts" / "record"))
    module = module_from_spec(spec_from_loader("recorder", loader))
    loader.exec_module(module)
    return module


def read_cast() -> tuple[dict[str, object], list[tuple[float, str, str]]]:
    first, *rest = (FOLDER / "researcher.cast").read_text().splitlines()
    return json.loads(first), [tuple(json.loads(line)) for line in rest]


def read_text() -> str:
    return (FOLDER / "researcher.txt").read_text()


def typed_commands() -> list[list[str]]:
    lines = [line for line in read_text().splitlines() if line.startswith("$ sublet ")]
    return [shlex.split(line)[2:] for line in lines]


def test_the_recording_is_an_asciicast_of_80_columns_in_the_order_of_time() -> None:
    header, events = read_cast()
    assert (header["version"], header["width"], header["height"]) == (2, 80, 24)
    assert len(events) > 20
    assert {kind for _, kind, _ in events} == {"o"}
    assert all(before[0] <= after[0] for before, after in pairwise(events))


def test_no_line_of_sublets_own_is_wider_than_the_terminal() -> None:
    _, events = read_cast()
    shown = ESCAPES.sub("", "".join(text for _, _, text in events)).replace("\r\n", "\n")
    pieces = re.split(r"[\r\n]", shown)
    assert [piece for piece in pieces if len(piece) > 80] == []
    assert max(len(line) for line in read_text().splitlines()) <= 80


def test_the_text_shows_what_the_recording_shows() -> None:
    _, events = read_cast()
    shown = ESCAPES.sub("", "".join(text for _, _, text in events))
    assert [line for line in read_text().splitlines() if line.strip() and line not in shown] == []


@pytest.mark.parametrize("words", typed_commands(), ids=" ".join)
def test_what_the_recording_types_can_still_be_typed(words: list[str]) -> None:
    from sublet.cli.app import cli
    from sublet.cli.command import DefaultGroup

    command = cli.get_command(click.Context(cli), words[0])
    if isinstance(command, DefaultGroup) and words[1] not in command.commands:
        command = command.commands[command.default]
    assert command is not None
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    own = words[: words.index("--")] if "--" in words else words
    own = own[: next((at for at, word in enumerate(own) if word.startswith("$(")), len(own))]
    assert {word for word in own if word.startswith("-")} <= known


def test_the_recording_shows_no_path_of_a_machine() -> None:
    assert recorder().find_paths(read_text() + (FOLDER / "researcher.cast").read_text()) == []


@pytest.mark.parametrize("shown", ["see /home/anna/x", "/tmp/rec-1/work"])
def test_what_shows_a_path_is_no_recording(shown: str) -> None:
    assert recorder().find_paths(f"$ sublet ps\n{shown}\n") != []


def test_a_recording_is_made_where_machine_and_person_are_called_otherwise() -> None:
    script = recorder()
    if subprocess.run(script.apart("true"), capture_output=True).returncode != 0:
        pytest.skip("nothing can be mounted here, and no machine can be renamed")
    words = script.apart(sys.executable, "-c", "import os, pwd; print(os.uname()[1], pwd.getpwuid(os.getuid())[0])")
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [script.MACHINE, script.PERSON]


@pytest.mark.parametrize("page", ["README.md", "docs/guides/first-run.md"])
def test_readers_are_led_to_the_recording(page: str) -> None:
    text = (ROOT / page).read_text()
    links = re.findall(r"\(([^)\s]*recordings/researcher\.(?:txt|cast))\)", text)
    assert len(links) == 2
    assert all(((ROOT / page).parent / link).is_file() for link in links)
