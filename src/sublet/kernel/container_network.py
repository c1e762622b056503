"""Chooses a container's network by what the machine supports and what the policy allows.

This file is sent along with the job, so it uses the standard library only.

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
BESIDE = "/usr/sbin:/sbin:/usr/lib/podman:/usr/libexec/podman:/usr/local/libexec/podman"  # Podman and root look there
TROUBLE = re.compile(r"slirp4netns|pasta|netavark|aardvark|\bcni\b|iptables|nftables|netns|network", re.IGNORECASE)


@dataclass(frozen=True)
class Network:
    """One kind of network that a container can get."""

    name: str  # the tool's --network option; empty: the option is omitted
    words: str  # the network's description, completing "containers have …"
    remedy: str = ""  # how an administrator can enable a better one

    @property
    def is_none(self) -> bool:
        """Whether the container has no connections, inbound or outbound."""
        return self.name == NONE


@dataclass(frozen=True)
class Means:
    """The networking facilities of a machine."""

    is_root: bool
    has_bridge: bool  # netavark or CNI, and iptables or nft
    programs: tuple[str, ...]  # user-mode networking programs: pasta, slirp4netns
    tun_error: str = ""  # why those programs can't open the TUN device; empty if they can


def find_program(*programs: str) -> str:
    """Return the path of the first installed program, searching also where only Podman and root look."""
    path = f"{os.environ.get('PATH', '')}:{BESIDE}"
    return next((where for program in programs if (where := shutil.which(program, path=path))), "")


def look_at_machine() -> Means:
    """Detect the networking facilities that the current user has on this machine."""
    plugins = find_program("netavark") or os.path.isdir("/usr/lib/cni") or os.path.isdir("/usr/libexec/cni")
    programs = tuple(name for name in ("pasta", "slirp4netns") if find_program(name))
    has_bridge = bool(plugins and find_program("iptables", "nft"))
    return Means(os.geteuid() == 0, has_bridge, programs, try_tun())


def try_tun(path: str = TUN) -> str:
    """Try to open the TUN device; return the system's error message, or an empty string on success."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def choose_networks(tool: str, policy: str, has_port: bool, means: Means) -> list[Network]:
    """Return the networks to try, best first; the last one can always be made."""
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
        # if both are installed, let Podman pick the one that it was built for
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
    """Whether a container tool's error is about the network, so that another network is worth a try."""
    return bool(TROUBLE.search(words))
