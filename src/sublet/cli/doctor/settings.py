"""`doctor`'s checks of the settings, and of the database that they name."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sublet.cli.doctor.database import check_database
from sublet.cli.doctor.findings import DoctorFinding
from sublet.kernel.container_network import USUAL
from sublet.kernel.errors import SubletError
from sublet.kernel.extras import has_server
from sublet.kernel.home import Home

if TYPE_CHECKING:
    from sublet.self_check import ReadSettings

SEE = "See docs/reference/settings.md."


def settings(home: Home) -> Iterator[DoctorFinding]:
    """Check the settings as the service would read them, from the file and the environment."""
    file = home.settings if os.path.exists(home.settings) else ""
    try:
        if file:
            with open(file, "rb") as opened:
                tomllib.load(opened)
        read = _read(home)
    except (OSError, ValueError) as error:
        yield DoctorFinding("bad", "settings", f"{home.settings}: {error}", SEE)
    except SubletError as error:
        yield DoctorFinding("bad", "settings", error.message, error.advice or SEE)
    else:
        yield DoctorFinding("ok", "settings", file or "all as they come")
        for name, why in (read.broken if read else {}).items():
            yield DoctorFinding("bad", f"platform {name}", why, "Install or mend its plug-in.")


def is_gateway(home: Home) -> bool:
    """Whether the settings are a gateway's; False if they can't be read, which another check reports."""
    try:
        read = _read(home)
    except (SubletError, OSError, ValueError):
        return False
    return read is not None and read.is_gateway


def network_policies(home: Home) -> dict[str, str]:
    """Return the network policy of each platform on this machine; the usual one if there are no settings."""
    try:
        read = _read(home)
    except (SubletError, OSError, ValueError):
        read = None
    return dict(read.networks) if read and read.networks else {"": USUAL}


def database(home: Home) -> Iterator[DoctorFinding]:
    """Check the database that the settings name."""
    try:
        read = _read(home)
    except (SubletError, OSError, ValueError):
        return  # another check reports unreadable settings
    url = read.database if read else ""
    if url.startswith("postgresql"):
        yield _postgres(url)
        return
    state, words, todo = check_database(home, url)
    yield DoctorFinding(state, "database", words, todo)


def _read(home: Home) -> ReadSettings | None:
    """Return the settings; None if only the client is installed."""
    if not has_server():
        return None
    from sublet.self_check import read_settings  # loads much, and only the doctor needs it

    return read_settings(home.root)


def _postgres(url: str) -> DoctorFinding:
    from sublet.self_check import look_at_postgres

    state = look_at_postgres(url)
    if state.trouble:
        return DoctorFinding("bad", "database", f"PostgreSQL, {state.where}: {state.trouble}", state.hint)
    return DoctorFinding("ok", "database", f"PostgreSQL {state.version}, {state.where}")
