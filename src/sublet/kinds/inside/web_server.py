"""Runs a web application as a job, behind a gate that asks for the session's secret. Travels with the job."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from sublet.kinds.inside import desktop_server, gate
from sublet.kinds.inside.listening import (
    Connect,
    connect_to_port,
    connect_to_socket,
    find_listeners,
    wait_for_server,
)

PLAN = ".sublet/web.json"
NOT_STARTED = 125  # with a reason in `unstarted`: not the program's own exit
LONGEST_SOCKET = 107  # bytes of a Unix socket's path
Plan = dict[str, Any]


def main() -> int:
    """Run the application that `.sublet/web.json` describes until it ends, or the job is stopped."""
    with open(PLAN, encoding="utf-8") as file:
        plan: Plan = json.load(file)
    secret, outer = os.environ.pop("SUBLET_SECRET"), int(os.environ["SUBLET_PORT"])
    port = plan["port"] or (find_free_port() if plan["serves"] == "port" else 0)
    if port and find_listeners(port):
        return refuse(plan, f"port {port} is taken on this machine; {{port}} in the command stands for a free one")
    path = find_socket(plan)
    values = {
        "port": str(port),
        "socket": path,
        "host": "127.0.0.1",
        "base_url": os.environ["SUBLET_BASE_URL"],
    }
    try:
        process = subprocess.Popen(fill_in(plan["run"], values), env=tell(values), stdin=subprocess.DEVNULL)
    except OSError as why:
        return refuse(plan, f"{plan['run'][0]}: {why.strerror}")
    signal.signal(signal.SIGTERM, lambda number, frame: process.terminate())
    connect = partial(connect_to_port, port) if port else partial(connect_to_socket, path)
    door = gate.Door(secret, values["base_url"], plan["path"], keeps_path=plan["keeps_path"])
    serve = partial(open_door, process, connect, find_handler(plan["serves"], door, connect), outer)
    threading.Thread(target=serve, daemon=True).start()
    code = process.wait()
    return code if code >= 0 else 128 - code


def find_socket(plan: Plan) -> str:
    """Return the path of its Unix socket: in the session's temporary directory, if that is short enough."""
    path = f"{os.environ.get('TMPDIR', '')}/app.sock"
    return path if "TMPDIR" in os.environ and len(os.fsencode(path)) <= LONGEST_SOCKET else str(plan["socket"])


def fill_in(words: list[str], values: dict[str, str]) -> list[str]:
    """Substitute where to listen in the words."""
    filled = []
    for word in words:
        for name, value in values.items():
            word = word.replace(f"{{{name}}}", value)
        filled.append(word)
    return filled


def tell(values: dict[str, str]) -> dict[str, str]:
    """Return the application's environment, with where it must listen."""
    return {**os.environ, **{f"SUBLET_{name.upper()}": value for name, value in values.items()}}


def find_free_port() -> int:
    """Return a free loopback port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def find_handler(serves: str, door: gate.Door, connect: Connect) -> Callable[[socket.socket], None]:
    """Return the handler of visitors."""
    handle = desktop_server.show if serves == "vnc" else gate.forward
    return lambda visitor: handle(visitor, door, connect)


def open_door(
    process: subprocess.Popen[bytes], connect: Connect, handle: Callable[[socket.socket], None], port: int
) -> None:
    """Serve visitors once the application listens."""
    if wait_for_server(lambda: connect, process):
        gate.serve(port, handle)


def refuse(plan: Plan, why: str) -> int:
    """Report that nothing was run and why, and record it for the session's end."""
    sys.stderr.write(f"sublet: {why}\n")
    descriptor = os.open(plan["unstarted"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(f"not-started\n{json.dumps(why[:600], ensure_ascii=False)}\n")
    return NOT_STARTED
