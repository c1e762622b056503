"""A provisioner for DAGMan: a job at the access point that leases an annex for a DAG, and ends the lease after it."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import FrameType
from typing import Any

import click

from sublet.annexes.calls import annexes, dags, jobs
from sublet.annexes.cli.details import details, read_details
from sublet.annexes.cli.submitting import tool
from sublet.annexes.views.annexes import LeaseAsk, LeaseView
from sublet.annexes.views.jobs import DagView
from sublet.cli.command import command
from sublet.cli.output import Output
from sublet.client.link import Link
from sublet.kernel.errors import AnnexInUse, LeaseOver, LeaseRefused, LoginNeeded, NotFound, SubletError
from sublet.kernel.home import sublet_home
from sublet.systems.cli.logins import login_of
from sublet.systems.own import Systems

LOOK_EVERY = 1.0  # seconds
QUIET = 10.0  # seconds without an active node after which only a FINAL node can be left
TRIES = 20  # earlier leases of a job that is started again and again
AWAY = 600.0  # seconds to wait for a service that doesn't answer
PAUSED = frozenset({"held", "idle", "suspended"})  # states of a DAG that goes on when it is released or started again


@command("provisioner", "sublet dag provisioner example --system expanse --nodes 2 --lifetime 4h > lease.sub")
@click.argument("name")
@click.option("--template", metavar="NAME", default="", help="Take missing details from this template.")
@click.option("--service", is_flag=True, help="For a SERVICE node instead: the DAG can be held and released.")
@details
def provisioner(out: Output, name: str, template: str, service: bool, **given: Any) -> None:
    """Print the submit description of a provisioner: in a DAG, write `PROVISIONER lease lease.sub`.

    It leases nodes when the DAG starts, lets the DAG's nodes run when they are up, and ends its lease when all of them
    have ended, a FINAL node included, or when the DAG is removed. If the lease ends first, the DAG is removed with a
    rescue DAG, and the provisioner's error file says why. It needs an open login (`sublet system login`): without one
    the DAG fails at once, and the provisioner's error file says so.

    With --service, write `SERVICE lease lease.sub` instead. The DAG's nodes are then submitted at once, and wait for
    the annex. Such a DAG goes on where it was after it was held and released, or this machine was restarted; DAGMan
    ends one with a PROVISIONER then.
    """
    read_details(given)  # report invalid options now
    words = ["dag", "provision", name, *([f"--template={template}"] if template else []), *_retype(given)]
    words += ["--service"] if service else []
    keyword = "SERVICE" if service else "PROVISIONER"
    lines = [
        f"# Leases nodes of {name} for a DAG, and gives them back when it ends. In the DAG: {keyword} lease FILE",
        *_describe(words, f"{name}.provisioner"),
    ]
    out.show({"name": name, "submit": "\n".join(lines) + "\n"}, lambda: lines, lambda: lines)


def _retype(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options of this command as they were typed, for the command that DAGMan runs."""
    for option in click.get_current_context().command.params:
        value = given.get(option.name or "")
        flag = max(option.opts, key=len)
        if value is True:
            yield flag
        elif isinstance(value, tuple):
            yield from (f"{flag}={item}" for item in value)
        elif value not in (None, False):
            yield f"{flag}={value}"


def _describe(words: list[str], name: str) -> list[str]:
    """Return the submit description of a job that runs a Sublet command at the access point."""
    installed = shutil.which("sublet")
    program, first = (installed, []) if installed else (sys.executable, ["-m", "sublet.cli"])
    return [
        "universe = scheduler",
        f"executable = {_literal(program)}",
        f'arguments = {_quote([*first, *words])[:-1]} --job=$(Cluster).$(Process)"',
        f"environment = {_quote([f'SUBLET_HOME={sublet_home().root}'])}",
        "getenv = PATH,HOME,USER,LANG,LC_ALL,PYTHONPATH,TZ",
        *(f"{kind} = {name}.{ending}" for kind, ending in (("output", "out"), ("error", "err"), ("log", "log"))),
        "notification = never",
        "queue",
    ]


def _literal(text: str) -> str:
    return text.replace("$", "$(DOLLAR)")


def _quote(words: list[str]) -> str:
    """Quote arguments in HTCondor's syntax: a list in double quotes, each argument in single quotes."""
    each = " ".join("'" + word.replace("'", "''").replace('"', '""') + "'" for word in words)
    return f'"{_literal(each)}"'


class Ended(BaseException):
    """DAGMan, or a person, has removed the provisioner."""


@command("provision", "sublet dag provision example --system expanse --nodes 2 --job 12.0")
@click.argument("name")
@click.option("--template", metavar="NAME", default="", help="Take missing details from this template.")
@click.option("--job", required=True, metavar="JOB", help="The provisioner's own job.")
@click.option("--service", is_flag=True, help="Run until the DAG ends.")
@click.option("--give-back", metavar="DAG", default="", help="Only end the lease NAME, when this DAG has ended.")
@details
def provision(out: Output, name: str, template: str, job: str, service: bool, give_back: str, **given: Any) -> None:
    """Run as a provisioner. DAGMan runs this command, as `sublet dag provisioner` sets it up; you never type it."""
    link = out.link()
    if give_back:
        _give_back_after(out, link, name, give_back)
        return
    signal.signal(signal.SIGTERM, _end)
    ask = LeaseAsk(name=name, template=template, details=read_details(given))
    if service:
        _serve(out, link, ask, job)
        return
    _check_login(link, link.do(annexes.plan(ask)).details.system)
    lease = lease_for(link, ask, job)
    out.note(f"{lease.name} is asked for.")
    dag: DagView | None = None
    try:
        _wait_until_up(link, lease)
        out.note(f"{lease.name} is up.")
        dag = link.do(dags.end_provisioning(job))
        dag = _wait_until_over(link, dag, lease, is_over)
        out.note(f"DAG {dag.id} has nothing left to do{', but its FINAL node' if dag.unready else ''}.")
    except Ended:
        out.note("It was removed.")
    except LeaseOver as error:
        out.note(f"DAG {dag.id if dag else ''} is removed; submitted again, it goes on where it was.")
        if dag:
            link.do(dags.remove(dag.id))
        raise error
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _give_back(out, link, lease, dag)


def _serve(out: Output, link: Link, ask: LeaseAsk, job: str) -> None:
    """Run as a service node, until DAGMan removes it after all others; if there can't be nodes, remove the DAG."""
    dag = link.do(dags.end_provisioning(job))
    lease: LeaseView | None = None
    try:
        _check_login(link, link.do(annexes.plan(ask)).details.system)
        lease = lease_for(link, ask, job)
        out.note(f"{lease.name} is asked for.")
        _wait_until_up(link, lease)
        out.note(f"{lease.name} is up.")
        dag = _wait_until_over(link, dag, lease, has_ended)
    except Ended:
        with suppress(SubletError):
            dag = link.do(dags.dag(dag.id))
    except (LeaseOver, LeaseRefused, LoginNeeded) as error:
        out.note(f"DAG {dag.id} is removed; submitted again, it goes on where it was.")
        link.do(dags.remove(dag.id))
        raise error
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if lease:
            _give_back(out, link, lease, dag)


def _end(number: int, frame: FrameType | None) -> None:
    raise Ended


def _check_login(link: Link, system: str) -> None:
    """Raise LoginNeeded at once if the system isn't signed in to, since no person is there who could."""
    if link.address.local and system in Systems(sublet_home().systems).own_names():
        import asyncio  # slow to import, and only needed for logins

        login = login_of(system)
        if not (login.shared and asyncio.run(login.check())):
            raise LoginNeeded(platform=system)


def lease_for(link: Link, ask: LeaseAsk, job: str) -> LeaseView:
    """Lease nodes for a provisioner's job, which has one lease even if HTCondor starts it again after a crash."""
    for number in range(TRIES):
        key = f"provisioner {job} {number}"
        try:
            lease = link.do(annexes.create(ask, f"{key} create"))
        except AnnexInUse:
            lease = link.do(annexes.add(ask, f"{key} add"))
        if lease.state != "ended":  # otherwise it was given back before the job was started again
            break
    return lease


def _wait_until_up(link: Link, lease: LeaseView) -> None:
    while not sum(node.state == "up" for node in lease.nodes) >= (lease.details.nodes or 1):
        if lease.state == "ended":
            raise LeaseRefused(why=lease.why)
        time.sleep(LOOK_EVERY)
        lease = link.do(annexes.annex(lease.name)).leases[0]


def _wait_until_over(link: Link, dag: DagView, lease: LeaseView, over: Callable[[DagView, float], bool]) -> DagView:
    """Wait until a DAG has only its provisioner left, or is gone; the service may be away for a while.

    DAGMan starts a FINAL node only after its provisioner has ended; until then the node counts as not ready.
    A held DAG keeps its lease, since its nodes run on. If the lease ends meanwhile, the DAG is removed when it runs
    again, because only then it writes a rescue DAG.
    """
    heard = quiet = now = time.monotonic()
    while not over(dag, now - quiet):
        time.sleep(LOOK_EVERY)
        now = time.monotonic()
        try:
            dag, heard = link.do(dags.dag(dag.id)), now
            if dag.state not in PAUSED:
                _check_lease(link, lease)
        except NotFound:
            return dag
        except LeaseOver:
            raise
        except SubletError:
            if now - heard > AWAY:
                raise
        quiet = quiet if _is_quiet(dag) else now
    return dag


def has_ended(dag: DagView, quiet: float) -> bool:
    """Whether a DAG is over for a service node, which DAGMan removes at the end; it is never over for being quiet."""
    return dag.state not in PAUSED and dag.state != "running"


def is_over(dag: DagView, quiet: float) -> bool:
    """Whether nothing but a FINAL node is left of a DAG that has been quiet for so many seconds."""
    if dag.state in PAUSED:
        return False
    return dag.state != "running" or dag.only_provisioner or quiet > QUIET


def _is_quiet(dag: DagView) -> bool:
    """Whether no node of a DAG but its provisioner is active; nodes that aren't ready then wait for the provisioner."""
    return dag.state not in PAUSED and dag.queued <= 1 and not dag.prerun + dag.postrun + dag.ready


def _check_lease(link: Link, lease: LeaseView) -> None:
    """Raise LeaseOver if the lease has ended and the annex has no other."""
    if not link.do(annexes.annex(_annex_of(lease))).leases:
        [ended] = link.do(annexes.annex(lease.name)).leases
        raise LeaseOver(lease=lease.name, why=ended.why or "no reason was given")


def _annex_of(lease: LeaseView) -> str:
    return lease.name.partition("#")[0]


def _give_back(out: Output, link: Link, lease: LeaseView, dag: DagView | None) -> None:
    """End the lease; if a FINAL node may still run, submit a job that ends the lease after it."""
    if dag is None or not dag.unready:
        _shut_down(out, link, lease.name)
        return
    annex = _annex_of(lease)
    lines = _describe(["dag", "provision", lease.name, f"--give-back={dag.id}"], f"{annex}.give-back")
    try:
        tool(link.do(jobs.submitting(annex)), "condor_submit", "-terse", "-", stdin="\n".join(lines) + "\n")
        out.note(f"{lease.name} is given back when DAG {dag.id} has ended.")
    except SubletError as error:
        out.note(f"Nothing can wait for DAG {dag.id}: {error.message}")
        _shut_down(out, link, lease.name)


def _give_back_after(out: Output, link: Link, lease: str, dag: str) -> None:
    """End a lease when a DAG has left the queue; remove a DAG whose annex has no leases left."""
    heard = time.monotonic()
    while time.monotonic() - heard < AWAY:
        try:
            states = {queued.id: queued.state for queued in link.do(dags.dags()).items}
            if dag not in states:
                break
            if states[dag] not in PAUSED and not link.do(annexes.annex(lease.partition("#")[0])).leases:
                link.do(dags.remove(dag))
            heard = time.monotonic()
        except SubletError:
            pass  # the service is away
        time.sleep(LOOK_EVERY)
    _shut_down(out, link, lease)


def _shut_down(out: Output, link: Link, lease: str) -> None:
    try:
        link.do(annexes.shutdown(lease))
        out.note(f"{lease} is given back.")
    except SubletError as error:
        out.note(f"{lease}: {error.message}")
