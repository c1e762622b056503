"""The wires of a site.

    this machine --outer-- login --inner switch-- ctl, c1, c2, …
                             |
    this machine --wide--   ap

Compute nodes know no way out, and the login host forwards nothing, unless the site has NAT.
"""

import subprocess
from pathlib import Path

from testbed.plan import Plan, SiteError

NAMESPACES = Path("/run/netns")


def make_network(plan: Plan) -> None:
    """Make the namespaces of all machines and the wires between them."""
    switch = plan.network("switch")
    new_namespace(switch)
    ip("link add inner type bridge", "link set inner up", within=switch)
    for machine in plan.machines:
        new_namespace(plan.network(machine))
        if machine != "ap":
            wire(switch, f"to-{machine}", plan.network(machine), "eth0")
            ip(f"link set to-{machine} master inner", within=switch)
            ip(f"addr add {plan.address(machine)}/24 dev eth0", within=plan.network(machine))
    login = plan.network("login")
    wire(None, out(plan), login, "out0")
    ip(f"addr add {plan.outer}.1/30 dev {out(plan)}")
    ip(f"addr add {plan.outer}.2/30 dev out0", within=login)
    ip(f"route replace unreachable {plan.inner}.0/24")  # else this machine asks its own gateway for inner addresses
    forward(plan, "0")  # a new namespace has this machine's setting, which may be 1
    if plan.ap:
        wire_ap(plan)
    if plan.nat:
        make_nat(plan)


def remove_network(plan: Plan) -> None:
    """Remove all that make_network made, or the half of it that is there."""
    for link in (out(plan), beside(plan)):
        subprocess.run(["ip", "link", "del", link], capture_output=True)
    subprocess.run(["ip", "route", "del", "unreachable", f"{plan.inner}.0/24"], capture_output=True)
    for machine in ["switch", *plan.machines]:
        if (NAMESPACES / plan.network(machine)).exists():
            subprocess.run(["ip", "netns", "del", plan.network(machine)], check=True)


def is_used(index: int) -> bool:
    """Whether a link, a namespace or a route on this machine has a site's index, whoever left it."""
    asked = (["-o", "link"], ["netns", "list"], ["route", "show", "table", "all"])
    said = "".join(subprocess.run(["ip", *words], capture_output=True, text=True).stdout for words in asked)
    return f"sublet{index}-" in said or any(f"10.{net}.{index}." in said for net in (201, 202, 203))


def processes(plan: Plan, machine: str) -> list[int]:
    """All processes that are in a machine's network, whoever started them."""
    if not (NAMESPACES / plan.network(machine)).exists():
        return []
    done = subprocess.run(["ip", "netns", "pids", plan.network(machine)], capture_output=True, text=True)
    return [int(word) for word in done.stdout.split()]


def inside(plan: Plan, machine: str) -> list[str]:
    """The words before a command that is to run in a machine's network only."""
    return ["nsenter", f"--net={NAMESPACES / plan.network(machine)}"]


def cable(plan: Plan, machine: str, state: str) -> None:
    """Pull a machine's cable, or put it back; for the login host the one to the outside.

    The others' is pulled at the switch: they notice nothing but silence, and don't try in vain all the time.
    """
    if machine not in ("login", "ap"):
        ip(f"link set to-{machine} {state}", within=plan.network("switch"))
        return
    wires = {"login": ["out0", *(["wan0"] if plan.ap else [])], "ap": ["eth0", "host0"]}[machine]
    ip(*(f"link set {name} {state}" for name in wires), within=plan.network(machine))
    if state == "up" and machine == "ap":
        ip(f"route replace {plan.inner}.0/24 via {plan.wide}.1", within=plan.network("ap"))


def wire_ap(plan: Plan) -> None:
    """Join `ap` to the login host and to this machine. It knows the way in: that it is closed is the site's doing."""
    login, ap = plan.network("login"), plan.network("ap")
    wire(login, "wan0", ap, "eth0")
    wire(None, beside(plan), ap, "host0")
    ip(f"addr add {plan.wide}.1/30 dev wan0", within=login)
    ip(f"addr add {plan.wide}.5/30 dev {beside(plan)}")
    ip(f"addr add {plan.wide}.2/30 dev eth0", f"addr add {plan.wide}.6/30 dev host0", within=ap)
    ip(f"route add {plan.inner}.0/24 via {plan.wide}.1", within=ap)


def make_nat(plan: Plan) -> None:
    """Let the compute nodes connect outward through the login host, and nobody inward."""
    for rule in (
        "-P FORWARD DROP",
        "-A FORWARD -i eth0 ! -o eth0 -j ACCEPT",
        "-A FORWARD -o eth0 -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
        f"-t nat -A POSTROUTING -s {plan.inner}.0/24 ! -o eth0 -j MASQUERADE",
    ):
        run([*inside(plan, "login"), "iptables", "-w", *rule.split()])
    forward(plan, "1")
    for node in plan.computes:
        ip(f"route add default via {plan.address('login')}", within=plan.network(node))


def forward(plan: Plan, value: str) -> None:
    """Whether the login host passes on what is not for itself."""
    run([*inside(plan, "login"), "sh", "-c", f"echo {value} >/proc/sys/net/ipv4/ip_forward"])


def out(plan: Plan) -> str:
    """This machine's end of the wire to the login host."""
    return f"sublet{plan.index}-out"


def beside(plan: Plan) -> str:
    """This machine's end of the wire to `ap`."""
    return f"sublet{plan.index}-ap"


def new_namespace(name: str) -> None:
    """Make a network namespace with its loopback up."""
    run(["ip", "netns", "add", name])
    ip("link set lo up", within=name)


def wire(here: str | None, near: str, there: str, far: str) -> None:
    """Lay a wire between two namespaces (None is this machine's own) and switch both ends on."""
    ip(f"link add {near} type veth peer name {far} netns {there}", f"link set {near} up", within=here)
    ip(f"link set {far} up", within=there)


def ip(*commands: str, within: str | None = None) -> None:
    """Run commands of ip(8) in one go."""
    where = ["-n", within] if within else []
    run(["ip", *where, "-batch", "-"], "\n".join(commands) + "\n")


def run(argv: list[str], text: str = "") -> None:
    """Run a command that must succeed."""
    done = subprocess.run(argv, input=text, capture_output=True, text=True)
    if done.returncode:
        what = " ".join([*argv, *text.splitlines()])
        raise SiteError(f"{what}: {done.stderr.strip() or done.returncode}")
