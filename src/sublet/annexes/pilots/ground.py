"""The configuration of an access point that Sublet runs itself, and of the tools that talk to it: pure text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address

from sublet.annexes.pilots.tokens import POOL
from sublet.platforms.htcondor.configuration import STRICT, literal, places, write_lines
from sublet.platforms.htcondor.release import Release

SCHEDD = "schedd"  # the name that its socket behind the shared port keeps


@dataclass(frozen=True)
class Ground:
    """What was decided once about an access point of Sublet's own, and is kept."""

    directory: str
    sockets: str  # a directory, by a path that is short enough for sockets; found anew whenever it is read
    user: str  # who runs it, and whose jobs it takes
    domain: str  # the trust domain, and that of its users
    address: str  # where pilots find it
    port: int
    bind: str = ""  # this machine's own address, where that is another one
    schedd: bool = True  # False: jobs are kept by the machine's own access point, only pilots meet here
    lease: timedelta = timedelta(minutes=20)  # how long a job outlives a lost connection to its node

    @property
    def collector(self) -> str:
        """Where pilots tell of themselves."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}"

    @property
    def owner(self) -> str:
        """The one whom its tokens are for."""
        return f"{self.user}@{self.domain}"

    @property
    def name(self) -> str:
        """The name of its schedd."""
        return f"sublet@{self.domain}"


def daemons_configuration(ground: Ground, release: Release) -> str:
    """The configuration of its daemons: no negotiator, one port, no method but tokens."""
    daemons = f"condor@{ground.domain}"
    values = {
        **release.places,
        **places(ground.directory),
        **STRICT,
        **_network(ground),
        "DAEMON_LIST": "MASTER COLLECTOR SCHEDD" if ground.schedd else "MASTER COLLECTOR",
        "DAEMON_SOCKET_DIR": literal(ground.sockets),
        "SHARED_PORT_PORT": str(ground.port),
        # One port, and no other: neither for UDP nor for commands that come before all others.
        "WANT_UDP_COMMAND_SOCKET": "False",
        "COLLECTOR_SUPER_ADDRESS_FILE": "",
        "SCHEDD_SUPER_ADDRESS_FILE": "",
        "COLLECTOR_NAME": ground.domain,
        "SCHEDD_NAME": ground.name,
        "SCHEDD_ARGS": f"-f -sock {SCHEDD}",
        "ALLOW_ADMINISTRATOR": daemons,
        "ALLOW_DAEMON": daemons,
        "ALLOW_NEGOTIATOR": "",
        "ALLOW_CONFIG": "",
        "ALLOW_WRITE": ground.owner,
        "ALLOW_READ": f"{ground.owner} {daemons}",
        "ALLOW_ADVERTISE_STARTD": ground.owner,
        "ALLOW_ADVERTISE_MASTER": f"{ground.owner} {daemons}",
        "ALLOW_ADVERTISE_SCHEDD": daemons,
        # A node that is gone without a word: its slots are forgotten, its connection is noticed.
        "CLASSAD_LIFETIME": "30",
        "TCP_KEEPALIVE_INTERVAL": "10",
        "JOB_DEFAULT_LEASE_DURATION": str(int(ground.lease.total_seconds())),
        "SCHEDD_INTERVAL": "5",
        "SCHEDD_MIN_INTERVAL": "1",
        "USE_JOBSETS": "True",
        # Without this a shadow that has not yet reaped its file transfer lets every job with input wait for 5 s.
        "GUIDANCE_KEEP_CALM_AND": "True",
        "MAX_DEFAULT_LOG": "10 Mb",
        "MAX_NUM_DEFAULT_LOG": "1",
        "PREEN": "",
    }
    if not ground.schedd:
        # The machine's own schedd has no token for this collector, and asks it to have pilots call back (CCB).
        values |= {
            "SEC_READ_AUTHENTICATION": "OPTIONAL",
            "ALLOW_READ": "*",
            "ALLOW_ADVERTISE_SCHEDD": f"{ground.owner} {daemons}",
        }
    return write_lines(values, ["SECURITY:strong"])


def tools_configuration(ground: Ground, release: Release, directory: str) -> str:
    """The configuration of the tools that its owner uses; one token for each pilot lies beside the owner's own."""
    values = {
        **release.places,
        **places(directory),
        **STRICT,
        **_network(ground),
        "SCHEDD_HOST": ground.name,
        "SPOOL": literal(f"{ground.directory}/spool"),  # where ended jobs are remembered
        "JOB_DEFAULT_LEASE_DURATION": str(int(ground.lease.total_seconds())),
        # A pilot that can't be connected to calls back, and it is the access point's open port that it calls.
        "DAEMON_SOCKET_DIR": literal(ground.sockets),
        "SHARED_PORT_DAEMON_AD_FILE": literal(f"{ground.directory}/lock/shared_port_ad"),
    }
    return write_lines(values, ["SECURITY:strong"])


def _network(ground: Ground) -> dict[str, str]:
    version = ip_address(ground.address).version
    values = {
        "CONDOR_HOST": ground.address,
        "COLLECTOR_HOST": ground.collector,
        "NETWORK_INTERFACE": ground.bind or ground.address,
        "BIND_ALL_INTERFACES": "False",
        "ENABLE_IPV4": str(version == 4),
        "ENABLE_IPV6": str(version == 6),
        "UID_DOMAIN": ground.domain,
        "TRUST_DOMAIN": ground.domain,
        "DEFAULT_DOMAIN_NAME": ground.domain,
        "SEC_TOKEN_ISSUER_KEY": POOL,
    }
    return values | ({"TCP_FORWARDING_HOST": ground.address} if ground.bind not in ("", ground.address) else {})
