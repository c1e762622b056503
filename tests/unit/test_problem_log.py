"""Where the answer to an unexpected error says to read more: a file that is there, and never one that isn't."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from fastapi import Request

from sublet.api.problems import describe_log


@pytest.mark.parametrize(
    ("mode", "file", "there"),
    [
        ("personal", None, "logs/service.log"),
        ("personal", "/var/log/mine.log", "/var/log/mine.log"),
        ("gateway", "/var/log/gateway.log", "/var/log/gateway.log"),
        ("gateway", None, "journalctl"),
    ],
)
def test_the_log_that_a_service_really_writes_is_named(mode: str, file: str | None, there: str) -> None:
    settings, authority = (
        SimpleNamespace(logs=SimpleNamespace(file=file)),
        SimpleNamespace(has_owner=mode == "personal"),
    )
    app = SimpleNamespace(state=SimpleNamespace(service=SimpleNamespace(settings=settings, authority=authority)))
    said = describe_log(cast(Request, cast(Any, SimpleNamespace(app=app))))
    assert there in said
    assert ("service.log" in said) == (mode == "personal" and file is None)
