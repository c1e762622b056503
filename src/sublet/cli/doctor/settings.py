"""`doctor` on the settings, and on the database that they name."""

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
    """The settings, as the service would read them: the file, and the environment over it."""
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
    """Whether the settings are a gateway's, which others wait for; settings that can't be read are told elsewhere."""
    try:
        read = _read(home)
    except (SubletError, OSError, ValueError):
        return False
    return read is not None and read.is_gateway


def network_policies(home: Home) -> dict[str, str]:
    """What network containers may have, by the platforms on this machine; as usual, where no settings can be read."""
    try:
        read = _read(home)
    except (SubletError, OSError, ValueError):
        read = None
    return dict(read.networks) if read and read.networks else {"": USUAL}


def database(home: Home) -> Iterator[DoctorFinding]:
    """The database that the settings name."""
    try:
        read = _read(home)
    except (SubletError, OSError, ValueError):
        return  # that the settings can't be read is told already
    url = read.database if read else ""
    if url.startswith("postgresql"):
        yield _postgres(url)
        return
    state, words, todo = check_database(home, url)
    yield DoctorFinding(state, "database", words, todo)


def _read(home: Home) -> ReadSettings | None:
    """All settings; None where only the client is installed, and no service reads any."""
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
