"""Commands for systems: what is known of clusters that others run, the person's own, and what they would refuse."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import click

from sublet.booking.model.amounts import parse_count, parse_duration, parse_memory
from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.output import Output, table
from sublet.kernel.errors import SubletError
from sublet.kernel.home import sublet_home
from sublet.systems import catalogue
from sublet.systems.cli.logins import login, logout
from sublet.systems.cli.outlines import SIZES, show_check, today, wish_in
from sublet.systems.cli.probing import describe_record, probe, record_of
from sublet.systems.model.outline import outline
from sublet.systems.model.system import System, age
from sublet.systems.model.wish import Wish
from sublet.systems.own import Systems


def own_systems() -> Systems:
    """Return the systems of the person at the command line."""
    return Systems(sublet_home().systems)


def _names(ctx: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    known = own_systems().own_names() if ctx.info_name == "remove" else own_systems().names()
    return [name for name in known if name.startswith(begun)]


def _list_catalogue(ctx: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    return [name for name in catalogue.names() if name.startswith(begun)]


@click.group(
    "system", cls=CommandGroup, epilog=Example("sublet system check expanse --queue shared --cores 16 --time 2h")
)
def system() -> None:
    """List, show, add, check and probe the clusters that others run."""


@command("list", "sublet system list")
def list_systems(out: Output) -> None:
    """List systems, your own first, with the age of what is known."""
    systems = own_systems()
    own = systems.own_names()
    listed = []
    for name in (*own, *(name for name in systems.names() if name not in own)):
        try:
            listed.append(systems.find(name))
        except SubletError as error:
            out.note(f"note: {error.message}")
    out.show(
        [{"name": system.name, "own": system.name in own, **_summary(system)} for system in listed],
        lambda: table(
            ("NAME", "", "TITLE", "SCHEDULER", "QUEUES", "LOOKED AT", "CENTRE"),
            [_row(system, own) for system in listed],
        ),
        lambda: (system.name for system in listed),
    )


def _summary(system: System) -> dict[str, Any]:
    return {
        "title": system.title,
        "centre": system.centre,
        "scheduler": system.scheduler,
        "queues": [queue.name for queue in system.queues],
        "looked_at": system.looked_at,
        "closes": system.closes,
    }


def _row(system: System, own: list[str]) -> tuple[str, ...]:
    return (
        system.name,
        "own" if system.name in own else "",
        system.title,
        system.scheduler,
        str(len(system.queues) or ""),
        age(system.looked_at, today()) if system.looked_at else "",
        system.centre,
    )


@command("show", "sublet system show expanse")
@click.argument("name", shell_complete=_names)
def show(out: Output, name: str) -> None:
    """Show everything known about a system, with sources.

    For your own systems this includes how well starts were predicted, if your service is running.
    """
    from sublet.systems.cli.facts import describe_system  # only needed here

    systems = own_systems()
    system = systems.find(name)
    if name not in systems.own_names():
        out.show(system, lambda: describe_system(system, today()), lambda: [system.name])
        return
    from sublet.kernel.views import plain

    record = record_of(out, name)
    data = {**plain(system), "record": record}
    out.show(data, lambda: [*describe_system(system, today()), *describe_record(record)], lambda: [system.name])


@command(
    "add",
    "sublet system add expanse --user alice --project abc123",
    "sublet system add mine --host login.example.org --queue batch",
    "sublet system add lab --scheduler kubernetes --set context=lab --set namespace=alice",
)
@click.argument("name")
@click.option("--like", metavar="NAME", shell_complete=_list_catalogue, help="Start from this system of the catalogue.")
@click.option("--host", metavar="HOST", multiple=True, help="Where to sign in. Can be repeated.")
@click.option("--port", metavar="N", type=click.IntRange(1, 65535), help="The port of its SSH.")
@click.option("--user", metavar="USER", help="Your name there.")
@click.option("--key", metavar="FILE", help="A service account's private key, to sign in without asking a person.")
@click.option("--project", metavar="NAME", help="The default project to charge.")
@click.option("--queue", metavar="NAME", help="The default queue.")
@click.option("--constraint", metavar="NAME", help="The default type of node.")
@click.option(
    "--directory", metavar="DIR", help="The directory for sessions there, such as $SCRATCH/sublet; default: .sublet."
)
@click.option(
    "--module", "modules", metavar="NAME", multiple=True, help="A module to load in every job. Can be repeated."
)
@click.option("--path", metavar="DIR", multiple=True, help="Where tools are there: ~/venv/bin. Can be repeated.")
@click.option("--ssh", metavar="OPTION=VALUE", multiple=True, help="More for ssh: IdentityFile=~/.ssh/id_work.")
@click.option(
    "--mount", metavar="THERE=HERE", multiple=True, help="What this machine sees of its files: /home=/mnt/home."
)
@click.option("--scheduler", metavar="KIND", help="Its batch system; default: slurm.")
@click.option(
    "--set", "settings", metavar="NAME=VALUE", multiple=True, help="A setting of its kind of platform. Can be repeated."
)
def add(out: Output, name: str, like: str | None, scheduler: str | None, **mine: Any) -> None:
    """Make a system your own.

    It is one of the catalogue, or, with --host, one that the catalogue doesn't have. It becomes a file in
    SUBLET_HOME/systems, which you can edit; it overrides the catalogue.
    """
    from sublet.kernel.plugins import list_platform_kinds  # only needed here

    if scheduler and scheduler not in (kinds := list_platform_kinds()):
        raise click.UsageError(f"There is no scheduler {scheduler}; there are {', '.join(sorted(kinds))}.")
    host, ssh, mount, settings = (mine.pop(field) for field in ("host", "ssh", "mount", "settings"))
    like = like or (name if name in catalogue.names() else None)
    if not (like or host or (settings and scheduler)):
        raise click.UsageError(f"{name} is not in the catalogue: give --host, or --like and a system that it is like.")
    document: dict[str, Any] = {"like": like} if like else {"title": name}
    lists = {field: list(mine.pop(field)) for field in ("modules", "path")}
    document |= {field: value for field, value in mine.items() if value is not None}
    document |= {field: values for field, values in lists.items() if values}
    document |= {"login": {"hosts": list(host)}} if host else {}
    if ssh:
        document["ssh"] = _pairs(ssh, "--ssh takes an option and its value, as IdentityFile=~/.ssh/id_work")
    if mount:
        document["mounts"] = _pairs(mount, "--mount takes a path there and one here, as /home=/mnt/home")
    if settings:
        document["settings"] = _read_settings(settings)
    if scheduler or not like:
        document["scheduler"] = {"kind": scheduler or "slurm"}
    systems = own_systems()
    system = systems.add(name, document)
    _check_queue(systems, system)
    out.show(system, lambda: [f"{name} is added: {systems.file(name)}"], lambda: [name])
    if out.for_people:
        out.note(f"See what is known with: sublet system show {name}")


def _read_settings(given: tuple[str, ...]) -> dict[str, Any]:
    """Parse values as YAML: numbers, and lists such as [python3, papermill]."""
    import yaml

    pairs = _pairs(given, "--set takes a setting and its value, as namespace=alice")
    try:
        return {name: yaml.safe_load(value) for name, value in pairs.items()}
    except yaml.YAMLError as error:
        raise click.UsageError(f"--set: a value can't be read: {str(error).splitlines()[0]}") from error


def _pairs(given: tuple[str, ...], wanted: str) -> dict[str, str]:
    pairs = dict(text.split("=", 1) for text in given if "=" in text)
    if len(pairs) != len(given):
        raise click.UsageError(f"{wanted}, each once.")
    return pairs


def _check_queue(systems: Systems, system: System) -> None:
    if system.queue and system.queues and system.find_queue(system.queue) is None:
        systems.remove(system.name)
        known = ", ".join(queue.name for queue in system.queues)
        raise click.UsageError(f"There is no queue {system.queue} in {system.like or system.name}; there are {known}.")


@command("remove", "sublet system remove expanse")
@click.argument("name", shell_complete=_names)
def remove(out: Output, name: str) -> None:
    """Remove one of your own systems.

    Jobs there keep running. Their sessions say that the platform is missing, and continue when it is added again.
    """
    own_systems().remove(name)
    out.show({"removed": name}, lambda: [f"{name} is removed."], lambda: [name])


@command(
    "check",
    "sublet system check stampede3 --queue skx --nodes 2 --time 1h",
    "sublet system check expanse job.yaml --queue shared",
)
@click.argument("name", shell_complete=_names)
@click.argument("file", required=False, metavar="[FILE|-]")
@click.option("--queue", metavar="NAME", default="", help="The partition, QOS or queue.")
@click.option("--project", metavar="NAME", default="", help="The project, or account, that is charged.")
@click.option("--constraint", metavar="NAME", default="", help="The sort of node, where there are several.")
@click.option("--nodes", metavar="N", help="How many nodes.")
@click.option("--cores", metavar="N", help="Cores on each node.")
@click.option("--memory", metavar="SIZE", help="Memory on each node: 8GiB.")
@click.option("--gpus", metavar="N", help="GPUs on each node.")
@click.option("--time", "-t", metavar="TIME", help="For how long: 10m, 2h, 1-12:00:00.")
@click.option("--jobs", metavar="N", help="How many such jobs at once.")
@click.option("--option", metavar="WORDS", multiple=True, help="A word for the scheduler: --option=--mem=8G.")
def check(
    out: Output,
    name: str,
    file: str | None,
    queue: str,
    project: str,
    constraint: str,
    option: tuple[str, ...],
    **amounts: Any,
) -> int:
    """Say what a system would refuse.

    This needs no sign-in. Each part of the request, from a FILE or from options, is shown with its limit and the flag
    that changes it; nodes and cores are never silently converted into each other. The exit code is 1 if something
    would be refused.
    """
    system = own_systems().find(name)
    in_file = _in_file(file) if file else Wish()
    typed = {"queue": queue, "project": project, "constraint": constraint, "options": option, **_amounts(amounts)}
    wish = replace(in_file, **{field: value for field, value in typed.items() if value})
    sources = dict.fromkeys(SIZES - typed.keys(), "the request" if file == "-" else file or "")
    return show_check(out, system, outline(system, wish, sources=sources, today=today()))


def _in_file(file: str) -> Wish:
    from sublet.client.documents import document_of, parse  # only with a file

    return wish_in(parse(sys.stdin.buffer.read()) if file == "-" else document_of(file, {}, local=False))


def _amounts(typed: dict[str, str | None]) -> dict[str, Any]:
    parsers: dict[str, Any] = {"memory": parse_memory, "time": parse_duration}
    parsers["gpus"] = lambda text: parse_count(text, "a count", 0)
    return {field: parsers.get(field, parse_count)(text) for field, text in typed.items() if text is not None}


for one in (list_systems, show, add, check, probe, remove, login, logout):
    system.add_command(one)
