"""The recording in the docs is of a terminal of 80 columns, shows no machine, and its commands still exist."""

from __future__ import annotations

import getpass
import json
import re
import shlex
import socket
from itertools import pairwise
from pathlib import Path

import click
import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "recordings"
OF_THE_KERNEL = "[IPKernelApp] "  # what the notebook's own kernel prints is shown as it is
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


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
    assert [piece for piece in pieces if len(piece) > 80 and not piece.startswith(OF_THE_KERNEL)] == []
    assert max(len(line) for line in read_text().splitlines()) <= 80


def test_the_text_shows_what_the_recording_shows() -> None:
    _, events = read_cast()
    shown = ESCAPES.sub("", "".join(text for _, _, text in events))
    assert [line for line in read_text().splitlines() if line.strip() and line not in shown] == []


@pytest.mark.parametrize("words", typed_commands(), ids=" ".join)
def test_what_the_recording_types_can_still_be_typed(words: list[str]) -> None:
    from sublet.cli import cli

    command = cli.get_command(click.Context(cli), words[0])
    assert command is not None
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    own = words[: words.index("--")] if "--" in words else words
    own = own[: next((at for at, word in enumerate(own) if word.startswith("$(")), len(own))]
    assert {word for word in own if word.startswith("-")} <= known


def test_the_recording_names_no_machine() -> None:
    shown = read_text() + (FOLDER / "researcher.cast").read_text()
    names = {socket.gethostname(), getpass.getuser()}
    assert [name for name in names if re.search(rf"\b{re.escape(name)}\b", shown)] == []
    assert re.findall(r"(?<![\w.])/(?:home|root|tmp|work|var|usr|opt)/\S*", shown) == []


@pytest.mark.parametrize("page", ["README.md", "docs/guides/first-run.md"])
def test_readers_are_led_to_the_recording(page: str) -> None:
    text = (ROOT / page).read_text()
    links = re.findall(r"\(([^)\s]*recordings/researcher\.(?:txt|cast))\)", text)
    assert len(links) == 2
    assert all(((ROOT / page).parent / link).is_file() for link in links)
