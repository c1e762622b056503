"""What a pilot fetches when it starts, and while it runs: scripts, configuration, tokens and its key, as one tar."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from ipaddress import ip_address

from sublet.annexes.model.annex import (
    JOB_LINES,
    JOB_SESSION,
    JOB_TAKEN,
    JOB_TARGET,
    JOB_TIME,
    SLOT_ANNEX,
    SLOT_DRAINING,
    SLOT_END,
    SLOT_LEASE,
    SLOT_NODE,
    SLOT_OPEN,
    SLOT_SESSIONS,
    SLOT_TOOLS,
)
from sublet.annexes.pilots.own import Contact
from sublet.kinds.pilot import assign_variables, script
from sublet.platforms.batch.fetching import PLUGIN, read_program
from sublet.platforms.htcondor.configuration import PLUGINS, STRICT, attribute, places, write_lines

DRAINED = timedelta(seconds=2)  # idle time after which a draining node ends
OLDEST = 23  # the first version of HTCondor with which a node can attach directly to an access point
SHORTEST = 10  # seconds assumed for a job without a time limit
SHORTEST_MARGIN = timedelta(seconds=12)  # before the end of its session, as HTCondor needs a moment
# The interval of a starter's heartbeats. A job's lease counts from the last of them, and the access point gives up the
# connection after three times the longest interval; HTCondor's defaults are five minutes, and two and a half hours.
HEARTBEAT = {
    "STARTER_INITIAL_UPDATE_INTERVAL": "1",
    "STARTER_UPDATE_INTERVAL": "15",
    "STARTER_UPDATE_INTERVAL_MAX": "15",
}
ADVERTISED = (SLOT_ANNEX, SLOT_LEASE, SLOT_NODE, SLOT_OPEN, SLOT_SESSIONS, SLOT_DRAINING, SLOT_END, SLOT_TOOLS)


@dataclass(frozen=True)
class PilotPlan:
    """The plan of one pilot, as of now."""

    annex: str
    lease: str
    number: int
    open: bool
    idle: timedelta
    lifetime: timedelta
    to: Contact
    sessions: bool = False  # takes only sessions, no other jobs
    draining: bool = False  # takes no new jobs, and ends after the running ones
    lines: tuple[str, ...] = ()  # configuration lines that its system's file adds
    slots: int = 0  # of equal size; 0: one, which is divided as jobs need

    @property
    def name(self) -> str:
        """The pilot's name."""
        return pilot_name(self.lease, self.number)

    @property
    def margin(self) -> timedelta:
        """How long before its end the pilot releases its jobs, so that none is lost."""
        return min(max(SHORTEST_MARGIN, self.lifetime / 8), timedelta(minutes=1))


@dataclass(frozen=True)
class Calling:
    """How a pilot calls the service, how often, and with which secret."""

    urls: tuple[str, ...]
    pin: str
    secret: str
    every: timedelta


def pilot_name(lease: str, number: int) -> str:
    """Return a pilot's name."""
    return f"{lease}-{number}"


def trust_domain(lease: str, number: int) -> str:
    """Return the trust domain that signs orders to one pilot, which accepts no other tokens."""
    return f"ep.{pilot_name(lease, number)}"


def owner_of(lease: str, number: int) -> str:
    """Return the identity whose orders one pilot follows."""
    return f"owner@{trust_domain(lease, number)}"


def master_name(lease: str, number: int) -> str:
    """Return the name of a pilot's master at the access point."""
    return f"{pilot_name(lease, number)}@annex"


def bundle(
    plan: PilotPlan, calling: Calling, tokens: Mapping[str, str], key: bytes, stamp: str, tools: Sequence[str]
) -> bytes:
    """Return everything a pilot needs, as a tar: tokens by name, the key for orders, and the `tools` to look for."""
    values = {
        "lease": plan.lease,
        "number": plan.number,
        "secret": calling.secret,
        "urls": " ".join(calling.urls),
        "pin": calling.pin,
        "every": seconds(calling.every),
        "lifetime": seconds(plan.lifetime),
        "margin": seconds(plan.margin),
        "collector": plan.to.collector,
        "oldest": OLDEST,
        "tools": " ".join(tools),
    }
    return tar(
        {
            "values": assign_variables(values),
            "ask.sh": script("ask"),
            "pilot.sh": far("pilot"),
            "run_job.pl": far("run_job", "pl"),
            "check_job": far("check_job"),
            "fetch_kept": far("fetch_kept"),
            "fetch_web": far("fetch_web"),
            "fetch_web.py": read_program(*PLUGIN),
            "condor_config": configuration(plan).encode(),
            "passwords.d/POOL": key,
            **_changing(plan, tokens, stamp),
        }
    )


def renewal(plan: PilotPlan, tokens: Mapping[str, str], stamp: str) -> bytes:
    """Return what has changed, as a tar: tokens, and the changeable configuration."""
    return tar(_changing(plan, tokens, stamp))


def stamp_of(plan: PilotPlan, now: datetime, often: timedelta) -> str:
    """Return a stamp that changes whenever a pilot needs something new, at the latest after `often`."""
    digest = hashlib.sha256(changeable(plan).encode()).hexdigest()[:12]
    return f"{digest}.{int(now.timestamp() // seconds(often))}"


def _changing(plan: PilotPlan, tokens: Mapping[str, str], stamp: str) -> dict[str, bytes]:
    texts = {f"tokens.d/{name}": f"{token}\n".encode() for name, token in tokens.items()}
    return {**texts, "annex.conf": changeable(plan).encode(), "stamp": f"{stamp}\n".encode()}


def changeable(plan: PilotPlan) -> str:
    """Return the part of a pilot's configuration that may change while it runs."""
    whom = {SLOT_OPEN: str(plan.open), SLOT_SESSIONS: str(plan.sessions), SLOT_DRAINING: str(plan.draining)}
    # A draining node ends as soon as it is idle. The schedd keeps what it knows of a slot, so updates to it are
    # stopped.
    idle = DRAINED if plan.draining else plan.idle
    withheld = {"STARTD_DIRECT_ATTACH_SCHEDD_NAME": ""} if plan.draining else {}
    own = write_lines({**whom, "STARTD_NOCLAIM_SHUTDOWN": str(seconds(idle)), **withheld})
    return "".join(f"{line.strip()}\n" for line in plan.lines) + own


def configuration(plan: PilotPlan) -> str:
    """Return the configuration for a node that reaches the access point."""
    values = {**values_of(plan), **HEARTBEAT, "LOCAL_DIR": "$ENV(SUBLET_PILOT)"}
    own = "$ENV(SUBLET_PILOT)/fetch_web", "$ENV(SUBLET_PILOT)/fetch_kept"
    values["FILETRANSFER_PLUGINS"] = ", ".join([own[0], *PLUGINS.split(", ")[1:], own[1]])
    parts = "".join(f"include : $ENV(SUBLET_PILOT)/{name}.conf\n" for name in ("annex", "node"))
    return write_lines(values, ["SECURITY:strong"]) + parts


def values_of(plan: PilotPlan) -> dict[str, str]:
    """Return the settings of a pilot: attached to one access point, for one annex, with orders only from its owner."""
    host = plan.to.collector.rpartition(":")[0].strip("[]")
    version = ip_address(host).version
    domain = plan.to.owner.partition("@")[2]
    owner = owner_of(plan.lease, plan.number)
    chosen = f"TARGET.{JOB_TARGET} =?= MY.{SLOT_ANNEX}"
    without_line = " && ".join(f"TARGET.{name} =?= undefined" for name in JOB_LINES)
    unnamed = f"TARGET.{JOB_TARGET} =?= undefined && (TARGET.{JOB_TAKEN} =!= undefined || ({without_line}))"
    opened = f"(MY.{SLOT_OPEN} && {unnamed})"
    let_in = f"(MY.{SLOT_SESSIONS} =!= True || TARGET.{JOB_SESSION} =!= undefined)"
    return {
        **places(""),
        **STRICT,
        "DAEMON_LIST": "MASTER STARTD",
        "USE_SHARED_PORT": "True",
        "SHARED_PORT_PORT": "0",
        "WANT_UDP_COMMAND_SOCKET": "False",
        "ENABLE_IPV4": str(version == 4),
        "ENABLE_IPV6": str(version == 6),
        "CONDOR_HOST": host,
        "COLLECTOR_HOST": plan.to.collector,
        # Nodes can't be connected to: a client asks the collector to have the node call back.
        "CCB_ADDRESS": "$(COLLECTOR_HOST)",
        "CCB_RECONNECT_TIME": "5",
        "UID_DOMAIN": domain,
        "DEFAULT_DOMAIN_NAME": domain,
        "FILESYSTEM_DOMAIN": f"{plan.lease}.annex.sublet",  # shared with no machine, so that IF_NEEDED means a transfer
        "TRUST_DOMAIN": trust_domain(plan.lease, plan.number),
        "MASTER_NAME": master_name(plan.lease, plan.number),
        "STARTD_NAME": master_name(plan.lease, plan.number),
        "ALLOW_ADMINISTRATOR": owner,
        "ALLOW_READ": owner,
        "ALLOW_DAEMON": "condor@family",
        "ALLOW_WRITE": "",
        "STARTD_DIRECT_ATTACH_SCHEDD_NAME": plan.to.schedd,
        "STARTD_DIRECT_ATTACH_SCHEDD_POOL": plan.to.collector,
        "STARTD_DIRECT_ATTACH_INTERVAL": "1",
        "UPDATE_INTERVAL": "1",  # jobs wait for the next update, so this is how soon they start
        "MASTER_UPDATE_INTERVAL": "1",  # so that an order to stop finds it at once
        "STARTER_ALLOW_RUNAS_OWNER": "False",
        "RUNBENCHMARKS": "False",
        "STARTD_COMPUTE_AVAIL_STATS": "False",
        "FILETRANSFER_PLUGINS": PLUGINS,
        "MOUNT_UNDER_SCRATCH": "",  # the sandbox may be below /tmp, which this would hide from containers
        "SINGULARITY_IS_SETUID": "False",
        "SHUTDOWN_FAST_TIMEOUT": "20",
        "MAX_DEFAULT_LOG": "5 Mb",
        "MAX_NUM_DEFAULT_LOG": "1",
        "NUM_SLOTS_TYPE_1": str(plan.slots or 1),
        "SLOT_TYPE_1": f"1/{plan.slots}" if plan.slots else "100%",
        "SLOT_TYPE_1_PARTITIONABLE": str(not plan.slots),
        SLOT_ANNEX: attribute(plan.annex),
        SLOT_LEASE: attribute(plan.lease),
        SLOT_NODE: str(plan.number),
        "STARTD_ATTRS": f"$(STARTD_ATTRS) {' '.join(ADVERTISED)}",
        "MASTER_ATTRS": f"$(MASTER_ATTRS) {' '.join(ADVERTISED)}",
        "ENOUGH": f"time() + (TARGET.{JOB_TIME} ?: TARGET.AllowedExecuteDuration ?: {SHORTEST}) <= MY.{SLOT_END}",
        "START": f"({chosen} || {opened}) && {let_in} && MY.{SLOT_DRAINING} =!= True && $(ENOUGH)",
        "MASTER.DAEMON_SHUTDOWN_FAST": f"time() > $({SLOT_END})",
    }


@cache
def far(name: str, language: str = "sh") -> bytes:
    """Return a script for the nodes."""
    return files("sublet.annexes.pilots").joinpath("far", f"{name}.{language}").read_bytes()


def seconds(duration: timedelta) -> int:
    """Return whole seconds, at least one."""
    return max(1, round(duration.total_seconds()))


def tar(contents: Mapping[str, bytes]) -> bytes:
    """Pack files into an archive, readable by their owner only."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for place in sorted({name.rpartition("/")[0] for name in contents} - {""}):
            directory = tarfile.TarInfo(place)
            directory.type, directory.mode = tarfile.DIRTYPE, 0o700
            archive.addfile(directory)
        for name, content in contents.items():
            file = tarfile.TarInfo(name)
            file.size, file.mode = len(content), 0o600
            archive.addfile(file, io.BytesIO(content))
    return made.getvalue()
