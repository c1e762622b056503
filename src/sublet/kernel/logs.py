"""Structured logs: facts in the past tense, as JSON in the service or as plain text for a person."""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import Any, TextIO

import structlog

from sublet.kernel.log_file import LogFile
from sublet.kernel.log_limits import LogLimiter

SECRET_WORDS = ("token", "secret", "password", "authorization", "cookie")


def _without_secrets(_logger: Any, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    for key in event:
        if any(word in key.lower() for word in SECRET_WORDS):
            event[key] = "…"
    return event


class _Lines:
    """A stream for logging that never raises: on a full disk, lines are lost."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._file.flush()


class _Limited:
    """A processor that renders lines with another one, subject to the rate limit of each event."""

    def __init__(self, draw: structlog.typing.Processor) -> None:
        self._draw = draw
        self._limiter = LogLimiter()

    def __call__(self, logger: Any, method: str, event: structlog.typing.EventDict) -> str:
        name, level = str(event.get("event", "")), str(event.get("level", ""))
        time = event.get("timestamp", "")
        line = str(self._draw(logger, method, event))
        if not self._limiter.admit(name, level, len(line)):
            raise structlog.DropEvent
        counts = self._limiter.take_omitted(name, level)
        facts = [
            {"event": "log.lines-omitted", "of": of, "lines": lines, "level": "warning", "timestamp": time}
            for of, lines in counts.items()
        ]
        return "\n".join([*(str(self._draw(logger, method, fact)) for fact in facts), line])


class _Forward(logging.Handler):
    """A handler that passes what libraries log to the service's own log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log the record as an event named after the library's logger."""
        log = structlog.get_logger()
        facts = {"exc_info": record.exc_info} if record.exc_info else {}
        with contextlib.suppress(Exception):  # a record that can't be formatted must not stop its caller
            log.log(record.levelno, record.name, says=record.getMessage().strip(), **facts)


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
            _Limited(draw),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=file or _Lines(sys.stderr)),  # type: ignore[arg-type]
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    root.handlers = [handler for handler in root.handlers if not isinstance(handler, _Forward)]
    root.addHandler(_Forward(logging.WARNING))
