"""The configuration of an access point that Sublet runs, and of its tools, as pure text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address

from sublet.annexes.pilots.tokens import POOL
from sublet.platforms.htcondor.configuration import STRICT, literal, places, write_lines
from sublet.platforms.htcondor.release import Release

SCHEDD = "schedd"  # the fixed name of its socket behind the shared port


@dataclass(frozen=True)
class Ground:
    """The decisions about Sublet's own access point, made once and kept."""

    directory: str
    sockets: str  # a directory with a path short enough for sockets; determined at each read
    user: str  # the user who runs it, and whose jobs it takes
    domain: str  # the trust domain, and the domain of its users
    address: str  # where pilots connect to
    port: int
    bind: str = ""  # this machine's own address, if that is another
    schedd: bool = True  # False: the machine's own access point has the jobs, and only pilots report here
    lease: timedelta = timedelta(minutes=20)  # how long a job survives a lost connection to its node

    @property
    def collector(self) -> str:
        """The address to which pilots report."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}"

    @property
    def owner(self) -> str:
        """The identity for which its tokens are issued."""
        return f"{self.user}@{self.domain}"

    @property
    def name(self) -> str:
        """The name of its schedd."""
        return f"sublet@{self.domain}"


def daemons_configuration(ground: Ground, release: Release) -> str:
    """Return the configuration of its daemons: no negotiator, one port, and only tokens."""
    daemons = f"condor@{ground.domain}"
    values = {
        **release.places,
        **places(ground.directory),
        **STRICT,
        **_network(ground),
        "DAEMON_LIST": "MASTER COLLECTOR SCHEDD" if ground.schedd else "MASTER COLLECTOR",
        "DAEMON_SOCKET_DIR": literal(ground.sockets),
        "SHARED_PORT_PORT": str(ground.port),
        # Only one port: none for UDP, and none for super-user commands.
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
        # A node may vanish without notice: expire its slots, and notice its lost connection.
        "CLASSAD_LIFETIME": "30",
        "TCP_KEEPALIVE_INTERVAL": "10",
        "JOB_DEFAULT_LEASE_DURATION": str(int(ground.lease.total_seconds())),
        "SCHEDD_INTERVAL": "5",
        "SCHEDD_MIN_INTERVAL": "1",
        "USE_JOBSETS": "True",
        # Otherwise a shadow that hasn't reaped its file transfer yet makes every job with input wait for 5 s.
        "GUIDANCE_KEEP_CALM_AND": "True",
        "MAX_DEFAULT_LOG": "10 Mb",
        "MAX_NUM_DEFAULT_LOG": "1",
        "PREEN": "",
    }
    if not ground.schedd:
        # The machine's own schedd has no token for this collector, but asks it to have pilots call back (CCB).
        values |= {
            "SEC_READ_AUTHENTICATION": "OPTIONAL",
            "ALLOW_READ": "*",
            "ALLOW_ADVERTISE_SCHEDD": f"{ground.owner} {daemons}",
        }
    return write_lines(values, ["SECURITY:strong"])


def tools_configuration(ground: Ground, release: Release, directory: str) -> str:
    """Return the configuration of the owner's tools; tokens for pilots are beside the owner's own."""
    values = {
        **release.places,
        **places(directory),
        **STRICT,
        **_network(ground),
        "SCHEDD_HOST": ground.name,
        "SPOOL": literal(f"{ground.directory}/spool"),  # has the history of ended jobs
        "JOB_DEFAULT_LEASE_DURATION": str(int(ground.lease.total_seconds())),
        # A pilot that can't be connected to calls back, on the access point's open port.
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
