"""Structured logs: facts in the past tense, JSON in the service, plain for a person."""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import Any, TextIO

import structlog

from sublet.log_file import LogFile

SECRET_WORDS = ("token", "secret", "password", "authorization", "cookie")


def _without_secrets(_logger: Any, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    for key in event:
        if any(word in key.lower() for word in SECRET_WORDS):
            event[key] = "…"
    return event


class _Lines:
    """A file to log to that never fails: on a full disk lines are lost, and whoever logs goes on."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._file.flush()


def start_logs(*, plain: bool = False, level: int = logging.INFO, file: LogFile | None = None) -> None:
    """Set up logging for this process: to stderr or a file, JSON unless `plain`."""
    draw: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(colors=False) if plain else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _without_secrets,
            structlog.processors.format_exc_info,
            draw,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=file or _Lines(sys.stderr)),  # type: ignore[arg-type]
        cache_logger_on_first_use=True,
    )
