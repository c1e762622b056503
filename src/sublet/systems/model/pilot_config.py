"""HTCondor configuration lines that a system's file adds to its pilots, and the check of which are allowed.

A line can tune a pilot. It can't change whose jobs the pilot runs, where it reports, who controls it, or the values
that Sublet sets itself. It is a single line that can't read another file or run a command.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

MOST, LONGEST = 50, 1000  # lines, and characters in each
LINE = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)?)\s*=\s*([\x20-\x7e]*?)\s*")
ONE_SLOTS = re.compile(r"SLOT\d*_")
APPENDED = ("STARTD_ATTRS", "MASTER_ATTRS")  # may be extended, as NAME = $(NAME) MORE
# Settings that decide whose jobs a pilot runs, where it reports, who controls it, and its paths.
RESERVED = frozenset(
    """
    ALL_DEBUG ANNEX ANNEX_NAME CCB_ADDRESS CCB_RECONNECT_TIME COLLECTOR_HOST CONDOR_HOST CONDOR_IDS CRED_STORE_DIR
    DAEMON_LIST DAEMON_SOCKET_DIR DEFAULT_DOMAIN_NAME ENABLE_IPV4 ENABLE_IPV6 ENABLE_KERNEL_TUNING ENOUGH ETC EXECUTE
    FILESYSTEM_DOMAIN JOB_EXECDIR_PERMISSIONS LIB LIBEXEC LOCAL_CONFIG_DIR LOCAL_CONFIG_FILE LOCAL_DIR LOCK LOG MASTER
    MASTER_NAME MASTER_UPDATE_INTERVAL MEMORY NETWORK_INTERFACE NO_DNS NUM_CPUS PREEMPT RANK RELEASE_DIR
    REQUIRE_LOCAL_CONFIG_FILE RUN SBIN SHARED_PORT SHARED_PORT_PORT SHUTDOWN_FAST_TIMEOUT SLOT_TYPE SPOOL START STARTD
    STARTD_NAME STARTD_NOCLAIM_SHUTDOWN STARTER STARTER_ALLOW_RUNAS_OWNER TRUST_DOMAIN UID_DOMAIN UPDATE_INTERVAL
    USE_SHARED_PORT WANT_UDP_COMMAND_SOCKET BIN
    """.split()  # noqa: SIM905 - a list of so many words is read best as words
)
FAMILIES = (
    *("SEC_", "ALLOW_", "DENY_", "HOSTALLOW_", "HOSTDENY_", "SUBLET", "STARTD_DIRECT_ATTACH_", "DAEMON_SHUTDOWN"),
    *("NUM_SLOTS", "SLOT_TYPE_", "STARTER_REMOTE_", "FLOCK_", "SETTABLE_ATTRS", "ENABLE_RUNTIME_CONFIG"),
    *("ENABLE_PERSISTENT_CONFIG", "AUTH_SSL_", "CERTIFICATE_MAPFILE", "STARTD_HISTORY", "MASTER_DAEMON"),
)


@dataclass(frozen=True, slots=True)
class Additions:
    """Additions of a system's settings to every lease there."""

    options: tuple[str, ...] = ()  # for sbatch
    lines: tuple[str, ...] = ()  # HTCondor configuration, for its pilots


def check_lines(lines: Sequence[str]) -> list[str]:
    """Return what is wrong with the lines that a system's file adds; empty if all are allowed."""
    if len(lines) > MOST:
        return [f"there are {len(lines)} lines; {MOST} are possible"]
    return [problem for line in lines if (problem := _problem(line))]


def _problem(line: str) -> str:
    parts = LINE.fullmatch(line)
    if parts is None or len(line) > LONGEST:
        return f"{line[:60]!r} is not one line of the form NAME = value"
    name, value = parts[1], parts[2]
    if value.endswith("\\"):
        return f"{name}: a value can't end with a backslash, which would join the next line to it"
    own = name.rpartition(".")[2].upper()
    if own in APPENDED:
        return "" if value.startswith(f"$({own}) ") else f"{name} can only be made longer: {own} = $({own}) MORE"
    if own in RESERVED or own.startswith(FAMILIES) or ONE_SLOTS.match(own):
        return f"{name} is Sublet's own to say"
    return ""
