"""The SSH access to a system, shared by the person's login and the platform that uses it."""

from __future__ import annotations

from typing import Any

from sublet.kernel.errors import BadRequest
from sublet.systems.model.system import System


def door_of(system: System) -> dict[str, Any]:
    """Return host, user, port and ssh options, and whether one connection may carry many commands."""
    if not system.hosts and system.settings:
        why = f"Nobody signs in to {system.name} over SSH: its settings say who you are there."
        raise BadRequest(why, hint=f"See what it says: sublet platform show {system.name}")
    if not system.hosts:
        hint = f"Say where it is: sublet system add {system.name} --like {system.like or system.name} --host HOST"
        raise BadRequest(f"It is not known where to sign in to {system.name}.", hint=hint)
    options = {"ProxyJump": system.jump, **system.ssh} if system.jump else dict(system.ssh)
    door: dict[str, Any] = {"host": system.hosts[0], "user": system.user, "port": system.port or 0, "options": options}
    return door | {"shared": system.shares_connections}
