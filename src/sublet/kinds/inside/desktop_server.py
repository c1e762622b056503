"""Shows a VNC server in a browser by noVNC: its files, and a WebSocket to the server. Travels with the job.

Visitors pass the same gate as everywhere; the VNC server listens on a Unix socket of this session only.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import unquote

from sublet.kinds.inside import gate
from sublet.kinds.inside.websocket import BINARY, CLOSE, WebSocket

PAGES = ".sublet/novnc"
CHANNEL = "websockify"  # noVNC's path of the WebSocket
UTF8 = "; charset=utf-8"
TYPES = {
    ".html": f"text/html{UTF8}",
    ".js": f"text/javascript{UTF8}",
    ".mjs": f"text/javascript{UTF8}",
    ".json": f"application/json{UTF8}",
    ".css": f"text/css{UTF8}",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".ttf": "font/ttf",
    ".woff": "font/woff",
    ".oga": "audio/ogg",
}
UNKNOWN = "application/octet-stream"


def show(visitor: socket.socket, door: gate.Door, connect: Callable[[], socket.socket]) -> None:
    """Handle one request: a file of noVNC, or the connection to the VNC server."""
    head = gate.read_head(visitor)
    if head is None:
        visitor.sendall(gate.answer(400, "Not HTTP.\n"))
    elif not door.admits(head):
        visitor.sendall(gate.answer(403, gate.AWAY))
    elif welcome := door.welcome(head):
        visitor.sendall(welcome)
    elif head.upgrades and head.path.rstrip("/").endswith(f"/{CHANNEL}"):
        bridge(visitor, head, connect)
    elif head.path == door.base and head.method == "GET":
        visitor.sendall(gate.answer(303, "", ("Location", door.first)))
    else:
        visitor.sendall(answer_file(head.path.removeprefix(door.base)))


def answer_file(path: str) -> bytes:
    """Return a file of noVNC as a response; 404 for anything outside its folder."""
    root = os.path.realpath(PAGES)
    place = os.path.realpath(os.path.join(root, unquote(path).lstrip("/")))
    if not place.startswith(f"{root}/") or not os.path.isfile(place):
        return gate.answer(404, "There is no such page here.\n")
    with open(place, "rb") as file:
        content = file.read()
    kind = TYPES.get(os.path.splitext(place)[1].lower(), UNKNOWN)
    return gate.answer_bytes(200, content, kind, ("Cache-Control", "private, max-age=600"))


def bridge(visitor: socket.socket, head: gate.Head, connect: Callable[[], socket.socket]) -> None:
    """Relay bytes between a browser and the VNC server, until one of them closes."""
    try:
        server = connect()
    except OSError as why:
        visitor.sendall(gate.answer(502, f"The desktop doesn't answer: {why}\n"))
        return
    with server:
        server.settimeout(None)
        web = WebSocket(visitor, head, "binary")
        threading.Thread(target=_show_changes, args=(server, web), daemon=True).start()
        with suppress(OSError):
            while message := web.receive():
                server.sendall(message[1])
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)


def _show_changes(server: socket.socket, web: WebSocket) -> None:
    with suppress(OSError):
        while piece := server.recv(65536):
            web.send(BINARY, piece)
        web.send(CLOSE, struct.pack("!H", 1000) + b"the desktop has ended")
    with suppress(OSError):
        web.visitor.shutdown(socket.SHUT_RDWR)
