"""What a site is to be: its options, its addresses and where its files are."""

import dataclasses
import json
import os
import re
from dataclasses import dataclass, field, fields
from pathlib import Path

ROOT = Path(os.environ.get("SUBLET_TESTBED", "/var/tmp/sublet-testbed"))
NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")


class SiteError(Exception):
    """The site could not do it; the message says why."""


class Skip(SiteError):
    """This machine cannot have such a site; the message says what it lacks."""


@dataclass(frozen=True)
class Plan:
    """Everything that was decided when a site was started."""

    name: str
    index: int = 0  # 1..250: distinguishes the addresses and namespaces of sites that are up at once
    base: str = "/"
    nodes: int = 4
    cpus: int = 8
    memory: int = 4000  # MiB of a node
    accounts: bool = False
    cgroups: bool = False
    lax: bool = False
    one_time_codes: bool = False
    latency: int = 0  # milliseconds of a round trip to the login host
    nat: bool = False
    ap: bool = False
    ap_mounts: bool = False
    bashrc: str = "plain"
    home_size: str = "4g"
    slurm: tuple[str, ...] = ()
    sshd: tuple[str, ...] = ()
    owner: tuple[int, str] | None = None  # a process (and when it started) with which the site should end
    version: str = field(default="", compare=False)

    @property
    def root(self) -> Path:
        """The directory, a tmpfs of its own, with all that the site has."""
        return ROOT / self.name

    @property
    def computes(self) -> list[str]:
        """The names of the compute nodes."""
        return [f"c{number}" for number in range(1, self.nodes + 1)]

    @property
    def machines(self) -> list[str]:
        """The names of all machines, in the order in which they start."""
        return ["ctl", "login", *self.computes, *(["ap"] if self.ap else [])]

    @property
    def inner(self) -> str:
        """The network between the machines of the site."""
        return f"10.201.{self.index}"

    @property
    def outer(self) -> str:
        """The network between this machine (.1) and the login host (.2)."""
        return f"10.202.{self.index}"

    @property
    def wide(self) -> str:
        """The network between the login host (.1) and `ap` (.2), and between this machine (.5) and `ap` (.6)."""
        return f"10.203.{self.index}"

    def address(self, machine: str) -> str:
        """The address of a machine on the inner network, or of `ap` on the wide one."""
        if machine == "ap":
            return f"{self.wide}.2"
        fixed = {"ctl": 1, "login": 2}
        return f"{self.inner}.{fixed.get(machine) or 10 + int(machine[1:])}"

    def network(self, machine: str) -> str:
        """The name of a machine's network namespace; `switch` is the one that joins them."""
        return f"sublet{self.index}-{machine}"

    def save(self) -> None:
        """Write the plan where the other commands find it, never half of it."""
        new = self.root / "plan.new"
        new.write_text(json.dumps(dataclasses.asdict(self)))
        new.replace(self.root / "plan.json")

    @classmethod
    def load(cls, name: str) -> "Plan":
        """The plan of a site that is up."""
        if not NAME.fullmatch(name):
            raise SiteError(f"{name!r} is not a site's name: write small letters, digits and dashes")
        try:
            document = json.loads((ROOT / name / "plan.json").read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            raise SiteError(f"there is no site {name}; `testbed/site list` shows those that are up") from None
        owner = document.pop("owner")
        known = {field.name for field in fields(cls)}  # another checkout's site may be more
        kept = {
            key: tuple(value) if isinstance(value, list) else value for key, value in document.items() if key in known
        }
        return cls(**kept, owner=(owner[0], owner[1]) if owner else None)


def names() -> list[str]:
    """The names of all sites that are up, or were left half way."""
    return sorted(entry.name for entry in ROOT.iterdir() if entry.is_dir()) if ROOT.is_dir() else []


def started(pid: int) -> str | None:
    """When a process started, in the kernel's ticks; None when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *rest = stat.rpartition(")")[2].split()
    return None if state in "ZX" else rest[18]
