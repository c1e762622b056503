"""Which network a container gets, by what the machine can make and what the policy allows.

Travels with the job: Python alone.

The policies:

    usual   Podman and Docker make a network of the container's own, or give it none; other tools share the machine's
    own     as `usual`, but nothing shares the machine's network: services on its loopback may trust everyone local
    host    the machine's own network; a container whose port is to be reached gets one of its own all the same
    none    no network but a loopback of its own
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass

USUAL, OWN, HOST, NONE = POLICIES = ("usual", "own", "host", "none")
TUN = "/dev/net/tun"
BESIDE = "/usr/sbin:/sbin:/usr/lib/podman:/usr/libexec/podman:/usr/local/libexec/podman"  # where Podman and root look
TROUBLE = re.compile(r"slirp4netns|pasta|netavark|aardvark|\bcni\b|iptables|nftables|netns|network", re.IGNORECASE)


@dataclass(frozen=True)
class Network:
    """One network that a container may get."""

    name: str  # what the tool is told; empty: nothing, so that it does what it usually does
    words: str  # what the container has then, as the end of "containers have …"
    remedy: str = ""  # what an administrator can do about it

    @property
    def is_none(self) -> bool:
        """Whether nothing can be reached from inside, nor from outside."""
        return self.name == NONE


@dataclass(frozen=True)
class Means:
    """What there is on a machine to make networks of."""

    is_root: bool
    has_bridge: bool  # netavark or CNI, and what they set up rules with
    programs: tuple[str, ...]  # that carry packets without privileges
    tun_error: str = ""  # why these can't open the device that they need; empty if they can


def find_program(*programs: str) -> str:
    """The first of these programs that is there, also where only Podman and root look."""
    path = f"{os.environ.get('PATH', '')}:{BESIDE}"
    return next((where for program in programs if (where := shutil.which(program, path=path))), "")


def look_at_machine() -> Means:
    """What this machine has, for the user that this runs as."""
    plugins = find_program("netavark") or os.path.isdir("/usr/lib/cni") or os.path.isdir("/usr/libexec/cni")
    programs = tuple(name for name in ("pasta", "slirp4netns") if find_program(name))
    has_bridge = bool(plugins and find_program("iptables", "nft"))
    return Means(os.geteuid() == 0, has_bridge, programs, try_tun())


def try_tun(path: str = TUN) -> str:
    """Open the device by which a program carries a container's packets; what the system says if that fails."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def choose_networks(tool: str, policy: str, has_port: bool, means: Means) -> list[Network]:
    """The networks to try, best first; the last one always can be made."""
    if policy == NONE:
        return [Network(NONE, "no network, as the setting container_network says")]
    if policy == HOST and not has_port:
        name = HOST if tool in ("podman", "docker") else ""
        return [Network(name, "the machine's own network, as the setting container_network says")]
    if tool == "docker":
        return [Network("", "a network of their own, made by Docker")]
    if tool != "podman":
        return [_share_or_none(tool, policy)]
    return [*_networks_of_podman(means), _no_network(means)]


def _share_or_none(tool: str, policy: str) -> Network:
    if policy == OWN:
        return Network(NONE, f"no network: {tool} makes none, and the machine's may not be shared")
    return Network("", "the machine's own network, with all that listens on its loopback")


def _networks_of_podman(means: Means) -> list[Network]:
    networks = []
    if means.is_root and means.has_bridge:
        networks.append(Network("", "a network of their own, by a bridge"))
    if means.programs and not means.tun_error:
        # with both there, Podman knows best which of them it was built for
        name = "" if len(means.programs) > 1 and not means.is_root else means.programs[-1]
        networks.append(Network(name, f"a network of their own, by {name or ' or '.join(means.programs)}"))
    return networks


def _no_network(means: Means) -> Network:
    if not means.programs:
        missing = "neither netavark with iptables nor slirp4netns" if means.is_root else "neither slirp4netns nor pasta"
        return Network(NONE, f"no network: {missing} is installed", "Install slirp4netns.")
    if means.tun_error:
        why = f"no network: {means.programs[-1]} can't open {TUN} ({means.tun_error})"
        remedy = f"Let users open {TUN} (mode 0666 is usual), or set container_network of the platform."
        return Network(NONE, why, remedy)
    return Network(NONE, "no network: none of those that were tried could be made")


def is_about_network(words: str) -> bool:
    """Whether a container tool complains of the network, so that another one is worth a try."""
    return bool(TROUBLE.search(words))
