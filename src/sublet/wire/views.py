"""All views of /v1, for who has to know every one of them."""

from __future__ import annotations

from dataclasses import is_dataclass
from importlib import import_module
from pkgutil import iter_modules

from sublet.wire import v1


def every_view() -> dict[str, type]:
    """Each of them, by its name."""
    modules = [import_module(f"{v1.__name__}.{found.name}") for found in iter_modules(v1.__path__)]
    return {
        name: view
        for module in modules
        for name, view in vars(module).items()
        if isinstance(view, type) and is_dataclass(view)
    }
