"""Signals of the service: SIGTERM and SIGINT end it; SIGHUP reloads its settings and reopens its log.

A SIGHUP that is sent because the service's terminal was closed ends it too.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from sublet.kernel.errors import BadSettings
from sublet.kernel.hangup import Hangup
from sublet.kernel.home import Home
from sublet.kernel.log_file import LogFile
from sublet.kernel.serving import ServeOptions
from sublet.kernel.settings import Settings
from sublet.reloading import reload_settings
from sublet.server.listening import Server
from sublet.service import Service

log = structlog.get_logger()


def load_settings(options: ServeOptions, home: Home) -> Settings:
    """Load the settings, overridden by the command line's options."""
    only = {options.platform: {"kind": options.platform}} if options.platform else None
    return Settings.load(
        Path(home.root),
        Path(options.config) if options.config else None,
        host=options.host,
        port=options.port,
        database=options.database,
        mode="gateway" if options.gateway else None,
        platforms=only,
    )


def log_file(settings: Settings, home: Home, personal: bool) -> LogFile | None:
    """Return the log file, or None for standard error, which a service manager captures."""
    chosen = settings.logs.file or (Path(home.log) if personal else None)
    return LogFile(settings.home / chosen, settings.logs.largest, settings.logs.keep) if chosen else None


@dataclass(frozen=True)
class Reloader:
    """Reopens the log and reloads the settings."""

    hangup: Hangup
    options: ServeOptions
    home: Home
    file: LogFile | None

    def reload(self, service: Service) -> None:
        """Reopen the log and reload the settings; if the settings are invalid, keep the old ones and log why."""
        if self.file:
            try:
                self.file.open()
            except OSError as error:
                log.error("log.not-opened", why=error.strerror)
        try:
            reload_settings(service.settings, service.throttle, service.mail, load_settings(self.options, self.home))
        except BadSettings as error:
            log.error("settings.refused", why=error.message)
            return
        if self.file:
            self.file.largest, self.file.keep = service.settings.logs.largest, service.settings.logs.keep


def handle_signals(servers: Sequence[Server], service: Service, reloader: Reloader) -> Callable[[], None]:
    """Stop the servers at SIGTERM and SIGINT, and reload the settings at SIGHUP; return what stops them."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for server in servers:
            server.should_exit = True

    def hang_up() -> None:
        stop() if reloader.hangup.is_end() else reloader.reload(service)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGHUP, hang_up)
    return stop
