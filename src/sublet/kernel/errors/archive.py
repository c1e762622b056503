"""Errors of the archive and of estimates."""

from __future__ import annotations

from sublet.kernel.errors.error import SubletError


class BadQuery(SubletError):
    """{engine} can't run this query: {why}"""

    hint = "Ask one SELECT on the table `sessions`; `sublet archive list --json` shows its columns."
    status = 400
    exit_code = 2


class ExtraNotInstalled(SubletError):
    """{what} needs a package that is not installed here."""

    hint = "pip install 'sublet[{extra}]'"
    status = 400
    exit_code = 1
