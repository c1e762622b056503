"""Writes the reference pages out of the code itself; `make reference` writes them, a test compares them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel

from sublet.kernel import errors
from sublet.kernel.settings import Settings
from sublet.kernel.settings_operation import (
    ConnectionSettings,
    LogSettings,
    RetentionSettings,
    ThrottleSettings,
    UploadSettings,
)
from sublet.kernel.settings_tables import (
    AnnexSettings,
    AppSettings,
    HookSettings,
    MailSettings,
    Maintainer,
    OidcSettings,
    RecipeSettings,
    RegistryLogin,
    SigningSettings,
    TokenSettings,
)
from sublet.kernel.settings_trust import IssuerSettings, PolicySettings
from sublet.platforms.port import PledgeSettings

PAGES = Path(__file__).parents[2] / "docs" / "reference"
SECTIONS: dict[str, type[BaseModel]] = {
    "Annexes (`[annex]`)": AnnexSettings,
    "Mail (`[mail]`)": MailSettings,
    "Hooks (`[hooks]`)": HookSettings,
    "Tokens (`[tokens]`)": TokenSettings,
    "Signing in (`[signing]`)": SigningSettings,
    "OpenID providers (`[oidc.NAME]`)": OidcSettings,
    "Other issuers' tokens (`[issuers.NAME]`)": IssuerSettings,
    "A policy service (`[policy]`)": PolicySettings,
    "Logs (`[logs]`)": LogSettings,
    "Retention (`[retention]`)": RetentionSettings,
    "Rate limits (`[throttle]`)": ThrottleSettings,
    "Connections (`[connections]`)": ConnectionSettings,
    "Uploads (`[uploads]`)": UploadSettings,
    "Apps (`[apps]`)": AppSettings,
    "Maintainers (`[maintainers.NAME]`)": Maintainer,
    "Recipes (`[recipes.NAME]`)": RecipeSettings,
    'Registries (`[registries."NAME"]`)': RegistryLogin,
    "Pledges of a platform (`[platforms.NAME.pledges.PLEDGE]`)": PledgeSettings,
}
NOTE = "<!-- Written by `make reference` out of the code; edit there. -->\n"


def commands(
    group: click.Command, path: tuple[str, ...] = ("sublet",)
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with its words."""
    yield path, group
    if isinstance(group, click.Group):
        context = click.Context(group, info_name=path[-1])
        for name in group.list_commands(context):
            found = group.get_command(context, name)
            if found is not None and not found.hidden:
                yield from commands(found, (*path, name))


def commands_page() -> str:
    """What each command does, as its own help says it."""
    from sublet.cli.app import cli

    lines = [NOTE, "# Commands\n"]
    for path, command in commands(cli):
        settings = {**command.context_settings, "max_content_width": 100, "terminal_width": 100}
        context = click.Context(command, info_name=" ".join(path), **settings)
        lines.append(f"## {' '.join(path)}\n\n```text\n{command.get_help(context)}\n```\n")
    return "\n".join(lines)


def _settings(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        default = "required" if field.is_required() else _default(field.get_default(call_default_factory=True))
        yield f"| `{prefix}{name}` | {default} | {field.description or ''} |"


def _default(value: Any) -> str:
    from datetime import timedelta

    from sublet.booking.model.amounts import duration_text

    if isinstance(value, timedelta):
        return f"`{duration_text(value)}`"
    if isinstance(value, BaseModel) or value in ((), {}, None, ""):
        return ""
    return f"`{value}`"


def settings_page() -> str:
    """Each setting with its default."""
    head = "| setting | default | what it does |\n| --- | --- | --- |"
    lines = [
        NOTE,
        "# Settings\n",
        "Settings are read from `sublet.toml` in `SUBLET_HOME` (or the file given by `serve --config`), then from the",
        "environment (`SUBLET_HOLD=10m` sets `hold`), then from the command line.\n",
        "```toml",
        'hold = "10m"',
        'longest = "7d"\n',
        "[platforms.here]",
        'kind = "local"',
        "cores = 8\n",
        "[prices]",
        "core_hour = 0.01\n",
        "[[rules]]",
        'field = "compute.cores.min"',
        "cap = 16",
        "```\n",
        "## The service\n",
        head,
        *_settings(Settings),
        "",
    ]
    for title, section in SECTIONS.items():
        lines += [f"## {title}\n", (inspect.getdoc(section) or "") + "\n", head, *_settings(section), ""]
    from dataclasses import fields, is_dataclass

    from sublet.booking.model.prices import Prices
    from sublet.booking.model.rules import Rule

    for title, value in (("Prices (`[prices]`)", Prices), ("Rules (`[[rules]]`)", Rule)):
        assert is_dataclass(value)
        lines += [f"## {title}\n", (inspect.getdoc(value) or "") + "\n", "| setting | type |", "| --- | --- |"]
        lines += [f"| `{field.name}` | `{field.type}` |" for field in fields(value)]
        lines.append("")
    for entry in sorted(entry_points(group="sublet.platforms"), key=lambda entry: entry.name):
        platform = entry.load()
        lines += [f"## A platform of kind `{entry.name}`\n", (inspect.getdoc(platform) or "") + "\n", head]
        lines += [*_settings(platform), ""]
    return "\n".join(lines)


def errors_page() -> str:
    """Each error with its message and remedy."""
    lines = [NOTE, "# Errors\n"]
    lines.append(
        "On the command line an error is `error: …`, a blank line, `hint: …`; over HTTP it is a problem (RFC 9457).\n"
        "With `--json` the last line of stderr is that problem as JSON (`type`, `code`, `status`, `detail`, `hint`,\n"
        "and `errors` if there are several), with its `exit_code`;\n"
        "the exit code itself is the same. `usage` is a mistake in what was typed.\n"
    )
    lines += ["| code | message | hint | HTTP | exit |", "| --- | --- | --- | --- | --- |"]
    for _, error in sorted(inspect.getmembers(errors, inspect.isclass)):
        if issubclass(error, errors.SubletError) and error is not errors.SubletError:
            message = " ".join((error.__doc__ or "").split())
            lines.append(f"| `{error('x').code}` | {message} | {error.hint} | {error.status} | {error.exit_code} |")
    return "\n".join(lines) + "\n"


def endpoints_page() -> str:
    """Each endpoint with what it answers."""
    from sublet.server.app import openapi_document

    document = openapi_document()
    lines = [NOTE, "# Endpoints\n", "The service describes itself at `/openapi.json`.\n"]
    lines += [document["info"]["description"].rpartition("\n\n")[2].replace("\n", " ") + "\n"]
    lines += ["| method and path | what | answers |", "| --- | --- | --- |"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            answers = ", ".join(operation.get("responses", {}))
            what = " ".join(operation.get("description", "").partition("\n\n")[0].split())
            names = {one["name"] for one in operation.get("parameters", ())}
            what += " Takes an `Idempotency-Key`." if "Idempotency-Key" in names else ""
            lines.append(f"| `{method.upper()} {path}` | {what} | {answers} |")
    return "\n".join(lines) + "\n"


WRITERS = {
    "commands.md": commands_page,
    "settings.md": settings_page,
    "errors.md": errors_page,
    "endpoints.md": endpoints_page,
}

if __name__ == "__main__":
    for name, write in WRITERS.items():
        (PAGES / name).write_text(write())
        sys.stdout.write(f"wrote docs/reference/{name}\n")
