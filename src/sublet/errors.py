"""The errors that programs catch, as in `except sublet.errors.LoginNeeded`; defined in `kernel/errors/`."""

from __future__ import annotations

from sublet.kernel.errors import *  # noqa: F403
from sublet.kernel.errors import __all__ as __all__
