"""Examples in the pages: their options and settings are ones that there are; and each platform has a page."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest

from sublet.kernel.settings import Settings

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "platforms").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
STOPS = ("--", "|", ">", "<", "&&", "||", ";", "#", "2>&1", "&")
OWN_PLATFORMS = {"invited", "memory"}  # one is added by a command of its own, the other plays


def list_typed(text: str) -> Iterator[str]:
    """Commands of Sublet in the code of a page."""
    for sort, block in BLOCK.findall(text):
        if sort in ("", "sh", "console"):
            lines = block.replace("\\\n", " ").splitlines()
            yield from (line.removeprefix("$ ") for line in lines if line.removeprefix("$ ").startswith("sublet "))


def find_unknown(line: str) -> str:
    """What of a typed line the command line does not know; empty: nothing."""
    from sublet.cli.app import cli

    command: click.Command = cli
    words = shlex.split(line, comments=True)[1:]
    with click.Context(cli) as context:
        while isinstance(command, click.Group) and words and (inner := command.get_command(context, words[0])):
            command, words = inner, words[1:]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for word in words:
        if word in STOPS or word.startswith("<"):
            break
        if word.startswith("--") and word.partition("=")[0] not in {*known, "--help"}:
            return word
    return words[0] if isinstance(command, click.Group) and words and not words[0].startswith("-") else ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_on_a_page_have_the_options_that_it_names(page: Path) -> None:
    unknown = {line: word for line in list_typed(page.read_text()) if (word := find_unknown(line))}
    assert unknown == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_platforms_in_the_settings_of_a_page_can_be_read(page: Path, tmp_path: Path) -> None:
    for sort, block in BLOCK.findall(page.read_text()):
        assert not (sort == "yaml" and block.startswith("platforms:")), "settings are TOML"
        if sort == "toml" and (platforms := tomllib.loads(block).get("platforms")):
            (tmp_path / "sublet.toml").write_text(block)
            assert Settings.load(tmp_path).platforms.keys() == platforms.keys()


@pytest.mark.parametrize("kind", sorted({entry.name for entry in entry_points(group="sublet.platforms")}))
def test_each_platform_is_on_the_page_of_platforms_with_its_settings(kind: str) -> None:
    if kind in OWN_PLATFORMS:
        return
    row = re.search(
        rf"^\| \[`{kind}`\]\(([^)]+)\) .*settings\.md#a-platform-of-kind-{kind}", PLATFORMS.read_text(), re.M
    )
    assert row
    assert (PLATFORMS.parent / row[1].partition("#")[0]).exists()


PLATFORMS = ROOT / "docs" / "platforms" / "README.md"
