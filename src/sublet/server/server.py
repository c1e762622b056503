"""Runs the service: on a Unix socket for its owner and on TCP for clients with a token, until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import logging
import os
import pwd
import socket
import stat
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any, TextIO

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from sublet.api.people import ON_SOCKET
from sublet.app import open_service
from sublet.kernel.descriptors import raise_limit
from sublet.kernel.errors import AlreadyServed, NotAGateway, NotHere
from sublet.kernel.hangup import Hangup
from sublet.kernel.home import Home, sublet_home
from sublet.kernel.log_file import redirect_stderr
from sublet.kernel.logs import start_logs
from sublet.kernel.memory import limit_arenas
from sublet.kernel.safe_paths import find_danger_above, is_trusted, name_user
from sublet.kernel.serving import ServeOptions, forget_serving, heed_signals, record_serving
from sublet.kernel.settings import Settings
from sublet.kernel.short_paths import fits, shorten
from sublet.people.api.profiles import person_view
from sublet.people.people import add_offline
from sublet.people.views.people import PersonView
from sublet.policies import has_owner
from sublet.server.app import make_app
from sublet.server.connections import Connections
from sublet.server.home_watch import end_without_home
from sublet.server.listening import PilotListener, Reception, make_server
from sublet.server.ports import listen_tcp
from sublet.server.signals import Reloader, handle_signals, load_settings, log_file
from sublet.service import Service

log = structlog.get_logger()

SWITCH = 0.001  # seconds after which a busy thread lets another run, so that I/O threads wait less
NEW = 10_000  # new objects after which the garbage collector runs: after tens of requests, not after each
EVERYWHERE = {"0.0.0.0", "::", ""}  # noqa: S104 - these are recognised, not bound


def run(options: ServeOptions) -> None:
    """Serve until SIGTERM or SIGINT, while sessions go on running; SIGHUP reloads the settings and reopens the log."""
    hangup = Hangup()
    heed_signals()
    raise_limit()
    limit_arenas()
    sys.setswitchinterval(SWITCH)
    home = sublet_home()
    home.make()
    settings = load_settings(options, home)
    path = os.path.abspath(options.socket or home.socket)
    file = log_file(settings, home, options.personal)
    with hold_lock(path), redirect_stderr(file):
        start_logs(plain=options.verbose, file=file)
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        asyncio.run(_serve(options, home, path, settings, Reloader(hangup, options, home, file)))


def spare_collector() -> None:
    """Exclude all objects that exist now from garbage collection, and collect new ones less often.

    Otherwise all requests pause again and again while the collector scans modules, routes and tables.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW, *gc.get_threshold()[1:])


def behind(settings: Settings) -> dict[str, Any]:
    """Return uvicorn's options for forwarded headers, which only the operator's own proxies may set."""
    return {"proxy_headers": bool(settings.proxies), "forwarded_allow_ips": list(settings.proxies)}


async def _serve(options: ServeOptions, home: Home, path: str, settings: Settings, reloader: Reloader) -> None:
    keeps_port = has_owner(settings) and path == home.socket
    listening = listen_tcp(settings.host, settings.port, home if keeps_port else None)
    with listening.socket as tcp, listen_unix(path) as unix:
        async with open_service(settings) as service:
            service.presenter.base_url = settings.url or _url(settings.host, tcp.getsockname()[1])
            app = make_app(service, _owner())
            app.state.moved_from = listening.moved_from
            public, private = _receptions(settings)
            servers = (
                make_server(app, public, **behind(settings)),
                make_server(_ForItsOwner(app), private, proxy_headers=False),
            )
            stop = handle_signals(servers, service, reloader)
            for listener in (tcp, unix):
                listener.listen(2048)
            if path == home.socket:
                record_serving(home, service.presenter.base_url, path)
            log.info("service.listening", url=service.presenter.base_url, socket=path)
            spare_collector()
            async with _pilots(service, public), _background(end_without_home(home.root, stop), "home watch"):
                await asyncio.gather(servers[0].serve([tcp]), servers[1].serve([unix]))
            await app.state.connect.close()
    with contextlib.suppress(FileNotFoundError):
        if path == home.socket:
            forget_serving(home)


def _receptions(settings: Settings) -> tuple[Reception, Reception]:
    """Return the limits for TCP and for the owner's socket; both make room by closing idle TCP connections."""
    connections = Connections.limit(settings.connections, settings.proxies, raise_limit())
    patience = settings.connections.request_timeout.total_seconds()
    return Reception(connections, patience), Reception(connections, patience, is_counted=False)


@contextlib.asynccontextmanager
async def _pilots(service: Service, reception: Reception) -> AsyncIterator[None]:
    """Listen for pilots while there are leases."""
    service.annexes.pilot_plans.listener = PilotListener(service, reception)
    async with _background(service.annexes.pilot_plans.listener.run(), "pilots' listener"):
        yield


@contextlib.asynccontextmanager
async def _background(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """Run a coroutine as a task until the block is left."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def add_person(options: ServeOptions, address: str, role: str) -> PersonView:
    """Add a person to a gateway's database, whether or not its service is running."""
    home = sublet_home()
    home.make()
    settings = load_settings(options, home)
    if has_owner(settings):
        raise NotAGateway(hint=f'Write mode = "gateway" into {home.settings}, or begin `sublet serve --gateway` first.')
    return person_view(add_offline(settings, _owner(), address, role))


class _ForItsOwner:
    """The application on the Unix socket: everyone who connects there is the socket's owner."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[ON_SOCKET] = True
        await self.app(scope, receive, send)


@contextlib.contextmanager
def hold_lock(path: str) -> Iterator[None]:
    """Hold the lock beside the socket, so that no second service can replace the first."""
    with _lock_file(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyServed(socket=path) from None
        yield


def _lock_file(path: str) -> TextIO:
    _refuse_unsafe(path)
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.fdopen(os.open(f"{path}.lock", flags, 0o600), "w", encoding="utf-8")
    except OSError as error:
        advice = "Choose a place that can be written: --socket PATH, or another SUBLET_HOME."
        raise NotHere(why=f"the socket {path} can't be made: {error.strerror}", advice=advice) from error


def _refuse_unsafe(path: str) -> None:
    """Raise NotHere if others could put a socket of theirs into this one's place, or made its files."""
    made_by_others = (f"{name} belongs to {owner}" for name in (path, f"{path}.lock") if (owner := _find_owner(name)))
    if danger := find_danger_above(path) or next(made_by_others, ""):
        advice = "Choose a directory that only you, or root, can write: --socket PATH, or another SUBLET_HOME."
        raise NotHere(why=f"the socket {path} would not be safe: {danger}", advice=advice)


def _find_owner(path: str) -> str:
    """Return whose a file or link is, if it belongs to neither this user nor root."""
    with contextlib.suppress(FileNotFoundError):
        status = os.lstat(path)
        return "" if is_trusted(status) else name_user(status.st_uid)
    return ""


@contextlib.contextmanager
def listen_unix(path: str) -> Iterator[socket.socket]:
    place = shorten(Path(path).parent) / os.path.basename(path)
    if not fits(place):
        advice = "Set SUBLET_HOME to a shorter one, or give --socket."
        raise NotHere(why=f"the path {path} is too long for a socket", advice=advice)
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(os.stat(path).st_mode):
            os.unlink(path)  # left by a service that has ended: we hold its lock
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        before = os.umask(0o177)
        try:
            listener.bind(str(place))
        finally:
            os.umask(before)
        own = os.lstat(path)
        try:
            yield listener
        finally:
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(own, os.lstat(path)):  # not that of a service in a home that was made anew
                    os.unlink(path)


def _url(host: str, port: int) -> str:
    name = "127.0.0.1" if host in EVERYWHERE else host
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def _owner() -> str:
    """Return the user name of this process, and so of the socket's owner."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
