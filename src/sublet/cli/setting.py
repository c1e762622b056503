"""The options `--set NAME=VALUE` and `--set-json NAME=JSON`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import click


def set_words(items: Iterable[str]) -> dict[str, str]:
    """Return the names and texts of `--set`."""
    return dict(_split(item, "--set", "VALUE") for item in items)


def set_json(items: Iterable[str]) -> dict[str, Any]:
    """Return the names and values of `--set-json`."""
    values = {}
    for item in items:
        name, text = _split(item, "--set-json", "JSON")
        try:
            values[name] = json.loads(text)
        except ValueError as error:
            raise click.UsageError(f"--set-json {name}: that is no JSON: {error}") from error
    return values


def _split(item: str, option: str, what: str) -> tuple[str, str]:
    name, given, value = item.partition("=")
    if not given or not name:
        raise click.UsageError(f"{option} {item}: write NAME={what}.")
    return name, value
