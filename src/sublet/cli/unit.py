"""A systemd unit that runs the service as it would be started here."""

from __future__ import annotations

import getpass
import os
import shutil
import sys
from collections.abc import Sequence

UNIT = """\
# Copy it to /etc/systemd/system/sublet.service, then: systemctl daemon-reload && systemctl enable --now sublet
[Unit]
Description=Sublet: when, and where, can I run this?
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
User={user}
UMask=0077
Environment={home}
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
# What runs on this machine outlives the service: only the service itself is ended.
KillMode=process
Delegate=yes
Restart=on-failure
RestartSec=5
TimeoutStopSec=60
LimitNOFILE=65536
# A gateway's master key, kept outside SUBLET_HOME:
#LoadCredential=sublet-master-key:/etc/sublet/master-key

[Install]
WantedBy=multi-user.target
"""


def make_unit(home: str, options: Sequence[str]) -> str:
    """Return the unit's text, with this program, user, SUBLET_HOME and options."""
    words = [*_program(), "serve", *options]
    return UNIT.format(
        user=getpass.getuser(), home=_quote(f"SUBLET_HOME={home}"), command=" ".join(_quote(word) for word in words)
    )


def _program() -> list[str]:
    """Return the command that starts Sublet, with absolute paths."""
    beside = os.path.join(os.path.dirname(sys.executable), "sublet")
    installed = beside if os.access(beside, os.X_OK) else shutil.which("sublet")
    return [installed] if installed else [sys.executable, "-m", "sublet"]


def _quote(word: str) -> str:
    """Quote a word for systemd."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if any(letter.isspace() or letter in "\"'\\;" for letter in word) else escaped
