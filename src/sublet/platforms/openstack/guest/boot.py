"""First steps in a virtual machine: find its secret, unseal the session with it, and run it.

This is the end of a session's user data, after `sealed.py`, and CODE and SEALED before that.
"""

from __future__ import annotations

import base64
import glob
import json
import os
import subprocess
import sys
import zlib
from typing import Any

from sublet.platforms.openstack.guest.sealed import unseal, write_line

CODE: str
SEALED: str
LABEL = "config-2"  # of the drive that Nova attaches
PLACE = "openstack/latest/meta_data.json"
CONSOLES = ("ttyS", "ttyAMA", "hvc", "ttysclp")


def find_console() -> str:
    """Return the console whose output Nova keeps: a serial one, if there is any."""
    try:
        with open("/sys/class/tty/console/active") as file:
            names = file.read().split()
    except OSError:
        names = []
    serial = [name for name in names if name.startswith(CONSOLES)]
    return "/dev/" + (serial[0] if serial else "console")


def say(words: str) -> None:
    """Print an unsealed line."""
    with open(find_console(), "wb", buffering=0) as console:
        console.write(("\n#sublet-plain " + words + "\n").encode())


def read_password(folder: str) -> str:
    """Return the machine's password, which only its root sees."""
    with open(os.path.join(folder, PLACE)) as file:
        return str(json.load(file).get("admin_pass") or "")


def find_password() -> str:
    """Read the password from the config drive, wherever it is."""
    folder = "/run/sublet-config"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    named = ["/dev/disk/by-label/" + LABEL, "/dev/disk/by-label/" + LABEL.upper()]
    others = [device for kind in ("sr?", "vd?", "sd?", "hd?") for device in sorted(glob.glob("/dev/" + kind))]
    for device in [*named, *others]:
        if not os.path.exists(device):
            continue
        mount = ["mount", "-o", "ro", device, folder]
        if subprocess.run(mount, stderr=subprocess.DEVNULL, check=False).returncode:
            continue
        try:
            return read_password(folder)
        except (OSError, ValueError):
            continue
        finally:
            subprocess.run(["umount", folder], check=False)
    return ""


def begin(given_code: str, sealed: str) -> None:
    """Unseal the session and run it."""
    password = find_password()
    if not password:
        say("no-secret")
        return
    secret = bytes.fromhex(password)
    try:
        content = unseal(secret, "session", base64.b85decode(sealed))
    except ValueError:
        say("other-secret")
        return
    code = zlib.decompress(base64.b85decode(given_code)).decode()
    names: dict[str, Any] = {"__name__": "session", "write_line": write_line}
    exec(compile(code, "session.py", "exec"), names)  # noqa: S102
    names["run"](secret, content, find_console())


if __name__ == "__main__":
    try:
        begin(CODE, SEALED)  # noqa: F821
    except Exception as error:
        say("failed " + repr(error)[:300])
        sys.exit(1)
