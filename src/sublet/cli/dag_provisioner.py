"""A provisioner for DAGMan: a job at the access point that leases an annex for a DAG, and gives it back at the end."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from types import FrameType
from typing import Any

import click

from sublet.cli.annex_details import details, said
from sublet.cli.command import command
from sublet.cli.logins import login_of
from sublet.cli.output import Output
from sublet.client.calls import annexes, dags
from sublet.client.link import Link
from sublet.errors import AnnexInUse, LeaseRefused, LoginNeeded, NotFound, SubletError
from sublet.home import sublet_home
from sublet.systems.own import Systems
from sublet.wire.v1.annexes import LeaseAsk, LeaseView
from sublet.wire.v1.jobs import DagView

LOOK_EVERY = 1.0  # seconds
AWAY = 600.0  # seconds for which a service that does not answer is waited for


@command("provisioner", "sublet dag provisioner example --system expanse --nodes 2 --lifetime 4h > lease.sub")
@click.argument("name")
@click.option("--template", metavar="NAME", default="", help="Take what is not said from this template.")
@details
def provisioner(out: Output, name: str, template: str, **given: Any) -> None:
    """Print the submit description of a provisioner: in a DAG, write `PROVISIONER lease lease.sub`.

    It leases nodes when the DAG starts, lets the DAG's nodes run when they are up, and ends its lease when all of them
    have ended, or when the DAG is removed. It needs an open login (`sublet system login`): without one the DAG fails at
    once, and the provisioner's error file says so.
    """
    said(given)  # what can't be read is told now
    typed = [f"--{key}={value}" for key, value in given.items() if value is not None]
    words = ["dag", "provision", name, *([f"--template={template}"] if template else []), *typed]
    found = shutil.which("sublet")
    program, first = (found, []) if found else (sys.executable, ["-m", "sublet.cli"])
    lines = [
        f"# Leases nodes of {name} for a DAG, and gives them back when it ends. In the DAG: PROVISIONER lease FILE",
        "universe = scheduler",
        f"executable = {_literal(program)}",
        f'arguments = {_quoted([*first, *words])[:-1]} --job=$(Cluster).$(Process)"',
        f"environment = {_quoted([f'SUBLET_HOME={sublet_home().root}'])}",
        "getenv = PATH,HOME,USER,LANG,LC_ALL,PYTHONPATH,TZ",
        f"output = {name}.provisioner.out",
        f"error = {name}.provisioner.err",
        f"log = {name}.provisioner.log",
        "notification = never",
        "queue",
    ]
    out.show({"name": name, "submit": "\n".join(lines) + "\n"}, lambda: lines, lambda: lines)


def _literal(text: str) -> str:
    return text.replace("$", "$(DOLLAR)")


def _quoted(words: list[str]) -> str:
    """Words as HTCondor reads a list of them: in quotation marks, each in single quotes."""
    each = " ".join("'" + word.replace("'", "''").replace('"', '""') + "'" for word in words)
    return f'"{_literal(each)}"'


class Ended(BaseException):
    """DAGMan, or a person, has removed the provisioner."""


@command("provision", "sublet dag provision example --system expanse --nodes 2 --job 12.0")
@click.argument("name")
@click.option("--template", metavar="NAME", default="", help="Take what is not said from this template.")
@click.option("--job", required=True, metavar="JOB", help="The provisioner's own job.")
@details
def provision(out: Output, name: str, template: str, job: str, **given: Any) -> None:
    """Be a provisioner: what `sublet dag provisioner` has DAGMan run. Nobody types it."""
    signal.signal(signal.SIGTERM, _end)
    link = out.link()
    ask = LeaseAsk(name=name, template=template, details=said(given))
    _check_login(link, link.do(annexes.plan(ask)).details.system)
    lease = _leased(link, ask)
    out.note(f"{lease.name} is asked for.")
    try:
        _wait_until_up(link, lease)
        out.note(f"{lease.name} is up.")
        dag = link.do(dags.provisioned(job))
        _wait_until_over(link, dag)
        out.note(f"DAG {dag.id} has nothing left to do.")
    except Ended:
        out.note("It was removed.")
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _give_back(out, link, lease)


def _end(number: int, frame: FrameType | None) -> None:
    raise Ended


def _check_login(link: Link, system: str) -> None:
    """LoginNeeded at once, where a person would have to sign in: nobody is there who could."""
    if link.address.local and system in Systems(sublet_home().systems).own_names():
        import asyncio  # slow, and only needed for logins

        login = login_of(system)
        if not (login.shared and asyncio.run(login.check())):
            raise LoginNeeded(platform=system)


def _leased(link: Link, ask: LeaseAsk) -> LeaseView:
    try:
        return link.do(annexes.create(ask))
    except AnnexInUse:
        return link.do(annexes.add(ask))


def _wait_until_up(link: Link, lease: LeaseView) -> None:
    while not sum(node.state == "up" for node in lease.nodes) >= (lease.details.nodes or 1):
        if lease.state == "ended":
            raise LeaseRefused(why=lease.why)
        time.sleep(LOOK_EVERY)
        lease = link.do(annexes.annex(lease.name)).leases[0]


def _wait_until_over(link: Link, dag: DagView) -> None:
    """Until a DAG waits for nothing but its provisioner, or is gone; the service may be away for a while."""
    heard = time.monotonic()
    while dag.state == "running" and not dag.only_provisioner:
        time.sleep(LOOK_EVERY)
        try:
            dag, heard = link.do(dags.dag(dag.id)), time.monotonic()
        except NotFound:
            return
        except SubletError:
            if time.monotonic() - heard > AWAY:
                raise


def _give_back(out: Output, link: Link, lease: LeaseView) -> None:
    """End the lease, unless it has ended by itself."""
    try:
        link.do(annexes.shutdown(lease.name))
        out.note(f"{lease.name} is given back.")
    except SubletError as error:
        out.note(f"{lease.name}: {error.message}")
