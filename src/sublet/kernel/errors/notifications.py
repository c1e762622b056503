"""Errors of notifications by mail and webhook."""

from __future__ import annotations

from sublet.kernel.errors.error import SubletError


class BadHook(SubletError):
    """{address} can't be notified: {why}"""

    hint = "A call goes to an https address that everyone can reach; mail goes only to your own address."
    status = 400
    exit_code = 2


class TooManyHooks(SubletError):
    """You already have {most} notifications, which is the limit."""

    hint = "`sublet notify list` shows them; `sublet notify remove ID` removes one."
    status = 409


class NotTold(SubletError):
    """{address} did not accept the notification: {why}"""

    hint = "It has to answer with a status from 200 to 299, within {seconds} s."
    status = 502
    exit_code = 3
