"""The command line of the testbed: `testbed/site up|down|exec|crash|boot|status|…`."""

import argparse
import json
import os
import signal
import subprocess
import sys
from typing import Any

from testbed import checkout, lifecycle
from testbed.box import build_box, find_base
from testbed.machines import clean_environment, entering, first_process, start_machine, stop_machine
from testbed.network import cable
from testbed.people import CODE_SECRET, PASSWORD, USERS, code
from testbed.plan import Plan, SiteError, Skip, names, started
from testbed.waiting import wait_for_machine

SKIPPED = 77  # what test programs say when they cannot run here


def main(argv: list[str]) -> int:
    """Do what the words say; exit 1 with a reason, or 77 where this machine cannot have a site."""
    os.umask(0o022)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that a half-made site is removed
    options = parser().parse_args(argv)
    try:
        options.act(options)
        return 0
    except Skip as reason:
        print(f"SKIP: {reason}", file=sys.stderr)
        return SKIPPED
    except SiteError as reason:
        print(f"error: {reason}", file=sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    top = argparse.ArgumentParser(prog="testbed/site", description="Real small HPC sites on this machine, as root.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, act: Any, help: str, *, site: bool = True, machine: bool = False) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=help, description=help)
        made.set_defaults(act=act)
        if site:
            made.add_argument("name", metavar="NAME", help="the site")
        if machine:
            made.add_argument("machine", metavar="MACHINE", help="ctl, login, c1, c2, … or ap")
        return made

    add_options(command("up", do_up, "start a site"))
    command("down", do_down, "stop a site; nothing is left")
    enter = command("exec", do_exec, "run a command on a machine of a site")
    enter.add_argument("where", metavar="[USER@]MACHINE", help="as root, or as a person by their login shell")
    enter.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    command("crash", do_crash, "take a machine's power away", machine=True)
    command("boot", do_boot, "switch a machine on again", machine=True)
    pull = command("cable", do_cable, "pull a machine's network cable, or put it back", machine=True)
    pull.add_argument("state", choices=["up", "down"])
    status = command("status", do_status, "how to log in, and which machines are on")
    status.add_argument("--json", action="store_true")
    command("code", do_code, "the code of the second factor, now")
    command("box", do_box, "build the base with newer software, once (a few minutes)", site=False)
    command("list", do_list, "the sites that are up", site=False)
    command("sweep", do_sweep, "stop the sites whose owner has died", site=False)
    return top


def add_options(up: argparse.ArgumentParser) -> None:
    """What a site can be."""
    plain = Plan("x")
    up.add_argument("--base", default="/", help="the site's system: / (this machine's, default), box, or a directory")
    up.add_argument("--nodes", type=int, default=plain.nodes, help="compute nodes (default: %(default)s)")
    up.add_argument("--cpus", type=int, default=plain.cpus, help="cores of a node (default: %(default)s)")
    up.add_argument("--memory", type=int, default=plain.memory, help="MiB of a node (default: %(default)s)")
    up.add_argument("--accounts", action="store_true", help="accounts and QOS (slurmdbd)")
    up.add_argument("--cgroups", action="store_true", help="memory limits by cgroups")
    up.set_defaults(lax=False)
    limits = up.add_mutually_exclusive_group()
    limits.add_argument(
        "--enforce", dest="lax", action="store_false", help="refuse jobs beyond a partition's limits (default)"
    )
    limits.add_argument(
        "--lax", action="store_true", help="accept jobs beyond a partition's limits; they pend for ever"
    )
    up.add_argument("--one-time-codes", action="store_true", help="a code is good for one login")
    up.add_argument("--latency", type=int, default=0, metavar="MS", help="round trip to the login host")
    up.add_argument("--nat", action="store_true", help="compute nodes connect outward through the login host")
    up.add_argument("--ap", action="store_true", help="a machine beside the site for an ordinary user's service")
    up.add_argument("--ap-mounts", action="store_true", help="that machine mounts /home of the site as /site/home")
    up.add_argument("--bashrc", choices=["plain", "slow", "noisy"], default="plain", help="everybody's .bashrc")
    up.add_argument("--home-size", default=plain.home_size, metavar="SIZE", help="room in /home (default: %(default)s)")
    up.add_argument("--slurm", action="append", default=[], metavar="KEY=VALUE", help="a line of slurm.conf")
    up.add_argument("--sshd", action="append", default=[], metavar="'KEY VALUE'", help="a line of sshd's configuration")
    up.add_argument("--owner", type=int, metavar="PID", help="`sweep` stops the site once this process has ended")


def do_up(options: argparse.Namespace) -> None:
    """Start a site and tell how to log in."""
    wanted = {key: value for key, value in vars(options).items() if key != "act"}
    wanted |= {"base": find_base(options.base), "slurm": tuple(options.slurm), "sshd": tuple(options.sshd)}
    wanted["owner"] = (options.owner, started(options.owner) or "") if options.owner else None
    if options.nodes < 1 or options.nodes > 200:
        raise SiteError("a site has 1 to 200 nodes")
    print(login_help(lifecycle.up(Plan(**wanted))))


def do_down(options: argparse.Namespace) -> None:
    """Stop a site; one that is not there is stopped already."""
    if options.name in names():
        lifecycle.stop(options.name)


def do_exec(options: argparse.Namespace) -> None:
    """Become a command on a machine."""
    argv = options.command[1:] if options.command[:1] == ["--"] else options.command
    user, _, machine = options.where.rpartition("@")
    how = "--session-command" if os.isatty(0) else "-c"
    words = entering(Plan.load(options.name), machine, argv or ["bash", "-l"], user, how)
    os.execvpe(words[0], words, clean_environment())


def do_crash(options: argparse.Namespace) -> None:
    """Take a machine's power away."""
    plan = Plan.load(options.name)
    entering(plan, options.machine, [])
    stop_machine(plan, options.machine)


def do_boot(options: argparse.Namespace) -> None:
    """Switch a machine on that is off."""
    plan = Plan.load(options.name)
    if options.machine not in plan.machines:
        raise SiteError(f"{plan.name} has no machine {options.machine}")
    if first_process(plan, options.machine) is None:
        start_machine(plan, options.machine)
        wait_for_machine(plan, options.machine)


def do_cable(options: argparse.Namespace) -> None:
    """Pull a cable, or put it back."""
    plan = Plan.load(options.name)
    entering(plan, options.machine, [])
    cable(plan, options.machine, options.state)


def do_status(options: argparse.Namespace) -> None:
    """Print how to log in, for a person or a program."""
    plan = Plan.load(options.name)
    print(json.dumps(facts(plan), indent=2) if options.json else login_help(plan))


def do_code(options: argparse.Namespace) -> None:
    """Print the code of this moment."""
    Plan.load(options.name)
    print(code())


def do_box(options: argparse.Namespace) -> None:
    """Build the box, with what Sublet needs on it, and tell where it is."""
    made = build_box()
    checkout.install(str(made))
    print(made)


def do_list(options: argparse.Namespace) -> None:
    """Print the names of the sites."""
    for name in names():
        print(name)


def do_sweep(options: argparse.Namespace) -> None:
    """Stop what nobody owns any more."""
    for name in lifecycle.sweep():
        print(f"stopped {name}")


def facts(plan: Plan) -> dict[str, Any]:
    """All that a test needs to use the site."""
    keygen = ["ssh-keygen", "-l", "-f", str(plan.root / "host_key.pub")]
    return {
        "name": plan.name,
        "host": f"{plan.outer}.2",
        "port": 22,
        "here": f"{plan.outer}.1",
        "host_from_ap": f"{plan.wide}.1" if plan.ap else None,
        "fingerprint": subprocess.run(keygen, capture_output=True, text=True, check=True).stdout.split()[1],
        "known_hosts": str(plan.root / "known_hosts"),
        "ssh_config": str(plan.root / "ssh_config"),
        "users": {user.name: user.factors for user in USERS},
        "password": PASSWORD,
        "password_file": str(plan.root / "password"),
        "key_file": str(plan.root / "id"),
        "code_secret": CODE_SECRET,
        "slurm": plan.version,
        "machines": {machine: "on" if first_process(plan, machine) else "off" for machine in plan.machines},
        "addresses": {machine: plan.address(machine) for machine in plan.machines},
        "ap": f"{plan.wide}.6" if plan.ap else None,
        "home": str(plan.root / "home"),
        "scratch": str(plan.root / "scratch"),
        "ap_home": str(plan.root / "ap-home") if plan.ap else None,
        "logs": str(plan.root / "log"),
    }


def login_help(plan: Plan) -> str:
    """How a person logs in and what they can do."""
    others = ", ".join(machine for machine in plan.machines if machine != "login")
    config = f"-F {plan.root}/ssh_config"
    return f"""\
{plan.name} is up: Slurm {plan.version}, {plan.nodes} nodes of {plan.cpus} cores.

  password and code   ssh {config} researcher@{plan.name}     (the password is {PASSWORD})
  key and code        ssh {config} keyholder@{plan.name}
  key                 ssh {config} service@{plan.name}
  password and push   ssh {config} pusher@{plan.name}
  a code              testbed/site code {plan.name}
  as root             testbed/site exec {plan.name} login         (or {others})
  stop it             testbed/site down {plan.name}"""
