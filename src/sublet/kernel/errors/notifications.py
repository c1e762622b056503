"""Errors of notifications by mail and webhook."""

from __future__ import annotations

from sublet.kernel.errors.error import SubletError


class BadHook(SubletError):
    """{address} can't be told: {why}"""

    hint = "A call goes to an https address that everyone can reach; mail goes to your own address alone."
    status = 400
    exit_code = 2


class TooManyHooks(SubletError):
    """You have {most} hooks already, and there can't be more."""

    hint = "`sublet notify list` shows them, and `sublet notify remove ID` makes room."
    status = 409


class NotTold(SubletError):
    """{address} did not take it: {why}"""

    hint = "It has to answer with a status from 200 to 299, within {seconds} s."
    status = 502
    exit_code = 3
