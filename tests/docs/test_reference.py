"""The reference is complete: what the code has, the pages have, word for word."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from sublet.kernel import errors
from sublet.kernel.settings import Settings
from tests.docs.reference import PAGES, SECTIONS, WRITERS, commands

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", WRITERS)
def test_a_reference_page_says_what_the_code_says(name: str) -> None:
    assert (PAGES / name).read_text() == WRITERS[name](), "run `make reference`"


def list_tables(of: Any) -> list[type[BaseModel]]:
    """The models in an annotation: each is a table of the settings' file."""
    if isinstance(of, type) and issubclass(of, BaseModel):
        return [of]
    return [model for inner in get_args(of) for model in list_tables(inner)]


def test_every_setting_has_a_description_and_every_table_of_settings_a_section() -> None:
    tables = {name: list_tables(field.annotation) for name, field in Settings.model_fields.items()}
    models = [Settings, *(model for found in tables.values() for model in found)]
    assert [name for model in models for name, field in model.model_fields.items() if not field.description] == []
    assert [name for name, found in tables.items() if not {*found} <= {*SECTIONS.values()}] == []


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
