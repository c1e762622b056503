"""The reference is complete: what the code has, the pages have, word for word."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from sublet.kernel import errors
from sublet.kernel.settings import Settings
from tests.docs.reference import PAGES, WRITERS, commands

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", WRITERS)
def test_a_reference_page_says_what_the_code_says(name: str) -> None:
    assert (PAGES / name).read_text() == WRITERS[name](), "run `make reference`"


def test_every_setting_has_a_description() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_every_error_has_a_message_and_a_hint() -> None:
    found = [error for _, error in inspect.getmembers(errors, inspect.isclass) if issubclass(error, errors.SubletError)]
    assert [error.__name__ for error in found if not error.__doc__] == []
    assert [error.__name__ for error in found if not error.hint and error is not errors.SubletError] == []


def test_every_command_has_help_that_ends_in_an_example() -> None:
    from sublet.cli.app import cli

    lacking = [
        " ".join(path)
        for path, command in commands(cli)
        if "Example" not in (command.help or "") + (command.epilog or "")
    ]
    assert lacking == []


def test_every_link_between_pages_leads_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert broken == []
