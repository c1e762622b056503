"""Access to a session's virtual machine by ssh: for one key, as one user, to one folder and one port.

The host key is made here, and its public half goes to the console, sealed: the service accepts no other.
The folder has `in`, the archive that the service sends; `left`, the one that it fetches; and `stop`, its order.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from typing import Any

DOOR = "/var/lib/sublet/door"  # the folder, and the home of the ssh user
PRIVATE = "/var/lib/sublet/ssh"
DOOR_USER, DOOR_NAME = 64124, "sublet-door"
PORT = 8888  # on loopback, where an interactive program listens
PLACES = "/usr/sbin:/usr/local/sbin:/sbin:/usr/bin:/bin"
SETTINGS = """Port {port}
HostKey {private}/host_key
AuthorizedKeysFile {private}/key
AllowUsers {name}
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PermitRootLogin no
PermitTunnel no
X11Forwarding no
AllowAgentForwarding no
AllowStreamLocalForwarding no
AllowTcpForwarding local
PermitOpen 127.0.0.1:{listens}
PrintMotd no
PidFile none
"""


class NoDoor(Exception):
    """Why nobody can come in, in words."""


def open_door(door: dict[str, Any]) -> dict[str, Any]:
    """Start sshd for the one key; return what the service must know of it."""
    sshd, keygen = (shutil.which(name, path=PLACES) for name in ("sshd", "ssh-keygen"))
    if not sshd or not keygen:
        raise NoDoor("its image has no sshd, which every file and every connection needs")
    for folder, mode in ((PRIVATE, 0o755), ("/run/sshd", 0o755), (DOOR, 0o700)):
        os.makedirs(folder, mode=mode, exist_ok=True)
    os.chown(DOOR, DOOR_USER, DOOR_USER)
    add_user(DOOR_NAME, DOOR_USER, DOOR)
    if not os.path.exists(PRIVATE + "/host_key"):
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", PRIVATE + "/host_key"], check=True)
    write_text(PRIVATE + "/key", "restrict,port-forwarding " + door["key"] + "\n")
    names = {"port": door["port"], "private": PRIVATE, "name": DOOR_NAME, "listens": PORT}
    write_text(PRIVATE + "/config", SETTINGS.format(**names))
    done = subprocess.run([sshd, "-f", PRIVATE + "/config"], stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise NoDoor("its sshd does not start: " + done.stderr.decode("utf-8", "replace").strip()[-200:])
    with open(PRIVATE + "/host_key.pub") as file:
        return {"host_key": " ".join(file.read().split()[:2]), "port": door["port"]}


def write_text(path: str, text: str) -> None:
    """Write a file that others may read."""
    with open(path, "w") as file:
        file.write(text)


def add_user(name: str, number: int, home: str) -> None:
    """Add a user and group."""
    rows = {
        "/etc/passwd": f"{name}:x:{number}:{number}::{home}:/bin/sh\n",
        "/etc/group": f"{name}:x:{number}:\n",
    }
    for path, row in rows.items():
        with open(path) as file:
            is_there = any(line.startswith(name + ":") for line in file)
        if not is_there:
            with open(path, "a") as file:
                file.write(row)


def add_ranges(name: str) -> None:
    """Add subordinate IDs, which Podman needs for most images."""
    for path in ("/etc/subuid", "/etc/subgid"):
        with open(path, "a+") as file:
            file.seek(0)
            if not any(line.startswith(name + ":") for line in file):
                file.write(name + ":1000000:65536\n")


def is_stopped() -> bool:
    """Whether the service has ordered the end."""
    return os.path.exists(DOOR + "/stop")


def is_listening() -> bool:
    """Whether the program accepts connections."""
    try:
        socket.create_connection(("127.0.0.1", PORT), timeout=1).close()
    except OSError:
        return False
    return True
