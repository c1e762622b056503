"""The command line, run in this process against a service that says what it was told to."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sublet.cli.app import run
from tests.canned import Canned


@dataclass(frozen=True)
class Typed:
    """What a command line did."""

    code: int
    out: str
    err: str


Type = Callable[..., Typed]
Serve = Callable[[Any], Canned]


@pytest.fixture
def type_in(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Type:
    """Types a command line, in a directory of its own."""
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setenv("SUBLET_HOME", str(tmp_path / "home"))

    def typed(*words: str, stdin: str = "") -> Typed:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capfd.readouterr()
        code = run(words)
        said = capfd.readouterr()
        return Typed(code, said.out, said.err)

    return typed


@pytest.fixture
def canned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], Canned]]:
    """Makes the service that the command line calls."""
    with ExitStack() as stack:

        def made(answers: Any) -> Canned:
            service = Canned(answers)
            monkeypatch.setenv("SUBLET_URL", stack.enter_context(service.serving(tmp_path)))
            return service

        yield made


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Local time is UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()
