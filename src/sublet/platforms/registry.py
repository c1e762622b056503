"""Makes the platforms that the settings name from their plug-ins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from sublet.kernel.errors import BadSettings, SubletError
from sublet.kernel.plugins import plugins
from sublet.kernel.settings_lines import at_setting, describe_error
from sublet.platforms.port import Platform

GROUP = "sublet.platforms"
PLATFORMS = "platforms"
Refuse = Callable[[Sequence[str | int], str], SubletError]


def refuse_settings(path: Sequence[str | int], why: str) -> BadSettings:
    """Return the error for settings that don't come from a file."""
    return BadSettings(f"The settings can't be used: {at_setting(path, why)}")


def list_addable_options(kinds: Iterable[str]) -> frozenset[str]:
    """Return the scheduler options that a person may add to jobs on platforms of these kinds."""
    classes: list[type[Platform]] = [plugins(GROUP)[kind].load() for kind in {*kinds}]
    return frozenset[str]().union(*(cls.addable_options for cls in classes))


def load_platforms(
    named: Mapping[str, Mapping[str, Any]], refuse: Refuse = refuse_settings
) -> tuple[dict[str, Platform], dict[str, str]]:
    """Make the platforms with these names and settings.

    Also return the names whose plug-in can't be loaded, and why.
    """
    entries = {entry.name: entry for entry in plugins(GROUP)}
    platforms: dict[str, Platform] = {}
    broken: dict[str, str] = {}
    for name, values in named.items():
        rest = dict(values)
        kind = rest.pop("kind", name)
        if kind not in entries:
            known = ", ".join(sorted(entries))
            raise refuse((PLATFORMS, name, "kind"), f"there is no {kind}, but {known}")
        try:
            cls: type[Platform] = entries[kind].load()
        except Exception as error:  # a plug-in may fail in any way, and must not take the service down
            broken[name] = f"{type(error).__name__}: {error}"
            continue
        try:
            platforms[name] = cls(name=name, **rest)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            why = describe_error(first, list(getattr(cls, "model_fields", ())))
            raise refuse((PLATFORMS, name, *first["loc"]), why) from error
    return platforms, broken
