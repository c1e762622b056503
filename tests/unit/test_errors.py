"""Every error is told by its own class, and `sublet.errors` has all of them."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

from sublet import errors as public
from sublet.kernel import errors
from sublet.kernel.errors import PlatformUnreachable, SubletError


def test_every_error_can_be_imported_from_the_package() -> None:
    """Whatever file an error is in, callers know one place."""
    defined = {
        name
        for module in pkgutil.iter_modules(errors.__path__, "sublet.kernel.errors.")
        for name, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
        if kind.__module__ == module.name
    }
    assert defined == set(errors.__all__) == set(public.__all__)


def test_a_message_and_its_hint_are_two_sentences() -> None:
    assert PlatformUnreachable(platform="sky", why="all attempts failed", hint="Wait.").sentences == (
        "The platform sky can't be reached: all attempts failed. Wait."
    )
    assert SubletError("It is late.", hint="Wait.").sentences == "It is late. Wait."
    assert SubletError("It is late").sentences == "It is late"
