"""The views of /v1, collected from the subjects."""

from __future__ import annotations

from dataclasses import is_dataclass
from importlib import import_module
from pkgutil import iter_modules

SUBJECTS = ("booking", "data", "people", "access", "annexes", "apps", "archive", "notices")


def every_view() -> dict[str, type]:
    """Return the views of the listed subjects, by name."""
    rooms = [import_module(f"sublet.{subject}.views") for subject in SUBJECTS]
    modules = [import_module(f"{room.__name__}.{info.name}") for room in rooms for info in iter_modules(room.__path__)]
    return {
        name: view
        for module in modules
        for name, view in vars(module).items()
        if isinstance(view, type) and is_dataclass(view) and view.__module__ == module.__name__
    }
