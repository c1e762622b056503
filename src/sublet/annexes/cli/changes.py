"""Commands that end an annex, or change its name and its guests."""

from __future__ import annotations

import click

from sublet.annexes.calls import annexes
from sublet.annexes.views.annexes import AnnexView, LeaseView
from sublet.cli.command import command
from sublet.cli.output import Output
from sublet.cli.prompts import ask_yes_or_no
from sublet.kernel.errors import SubletError
from sublet.kernel.texts import count_text


@command("cancel", "sublet annex cancel example#2")
@click.argument("name", metavar="NAME[#N]")
def cancel(out: Output, name: str) -> None:
    """Cancel resource requests that are still waiting in a queue."""
    view = out.link().do(annexes.cancel(name))
    out.show(view, lambda: map(_describe_end, view.leases), lambda: (lease.name for lease in view.leases))


@command(
    "shutdown",
    "sublet annex shutdown example",
    "sublet annex shutdown example#2",
    "sublet annex shutdown example#2 --node 1 --node 3",
)
@click.argument("name", metavar="NAME[#N]")
@click.option("--node", "nodes", metavar="N", type=int, multiple=True, help="End only this node of a lease.")
@click.option("--yes", "-y", is_flag=True, help="Don't ask, also if jobs run.")
def shutdown(out: Output, name: str, nodes: tuple[int, ...], yes: bool) -> None:
    """End an annex, one lease of it, or some nodes of one. Its jobs wait again; its name and its history stay.

    These nodes are given back to the system, which stops charging them. If jobs are running there, you are asked
    first; without a terminal they are ended without a question.
    """
    link = out.link()
    if out.can_ask and not yes:
        _agree(out, name, link.do(annexes.annex(name)), nodes)
    view = link.do(annexes.shutdown(name, nodes))
    if nodes:
        given = ", ".join(map(str, nodes))
        out.show(view, lambda: [f"Given back of {view.leases[0].name}: {given}."], lambda: [view.leases[0].name])
        return
    out.show(view, lambda: map(_describe_end, view.leases), lambda: (lease.name for lease in view.leases))


def _agree(out: Output, name: str, view: AnnexView, nodes: tuple[int, ...]) -> None:
    """Ask the person to confirm that running jobs may be stopped, or that it isn't known whether any run."""
    there = [node for lease in view.leases for node in lease.nodes if not nodes or node.number in nodes]
    running = sum(node.running for node in there)
    if running:
        busy = ", ".join(f"{node.running} on {node.node}" for node in there if node.running)
        out.note(f"{count_text(running, 'job')} {'runs' if running == 1 else 'run'} there now: {busy}.")
        out.note(
            "What they have not saved is lost, and they wait in the queue again. `sublet annex drain` lets them end."
        )
    elif view.trouble and there:
        out.note(f"Whether jobs run there is not known: {view.trouble}. Running jobs are stopped, and wait again.")
    else:
        return
    which = f"{count_text(len(nodes), 'node')} of {name}" if nodes else name
    if not ask_yes_or_no(f"End {which}?", "Agree with --yes."):
        raise click.Abort


def _describe_end(lease: LeaseView) -> str:
    if lease.state == "ended":
        return f"{lease.name} has ended."
    return f"{lease.name} is {lease.state}{f': {lease.why}' if lease.why else ''}."


@command("rename", "sublet annex rename example better")
@click.argument("name")
@click.argument("new")
def rename(out: Output, name: str, new: str) -> None:
    """Rename an annex. Its leases, and the jobs that name it, stay with it."""
    view = out.link().do(annexes.rename(name, new))
    out.show(view, lambda: [f"{name} is called {view.name} now."], lambda: [view.name])


@command("open", "sublet annex open example")
@click.argument("name")
def open_(out: Output, name: str) -> None:
    """Let an annex run all your jobs, also those that don't name it."""
    view = out.link().do(annexes.open_(name))
    out.show(view, lambda: [f"{view.name} runs all your jobs."], lambda: [view.name])


@command("close", "sublet annex close example")
@click.argument("name")
@click.option("--to-jobs", is_flag=True, help="Also to jobs that name it: sessions alone run there, at booked times.")
def close(out: Output, name: str, to_jobs: bool) -> None:
    """Let an annex run only those of your jobs that name it.

    With --to-jobs it takes no HTCondor jobs at all. Then Sublet alone schedules it, and its offers are booked, like
    those of this machine. Running jobs continue.
    """
    view = out.link().do(annexes.close(name, to_jobs))
    words = "sessions, at booked times" if view.sessions else "your jobs that name it"
    out.show(view, lambda: [f"{view.name} runs only {words}."], lambda: [view.name])


@command("share", "sublet annex share example bob")
@click.argument("name")
@click.argument("guest")
@click.option("--yes", "-y", is_flag=True, help="Don't ask.")
def share(out: Output, name: str, guest: str, yes: bool) -> None:
    """Let someone else run jobs on an annex: in containers only, as your account.

    The centre sees your account, your allocation pays, and you answer for it. Sublet lets a guest's jobs run only in
    containers that don't see your home directory, and keeps the guest's name in every record. They come by a token that
    you make for them (`sublet token --person NAME`), and ask for the platform annex-NAME.
    """
    out.note(
        f"Jobs of {guest} will run as your own account, in containers only, and are paid by your allocation.\n"
        "You answer for what they do; many centres forbid it. Their names are kept in every record."
    )
    if not yes:
        if not out.can_ask:
            raise SubletError("This needs your consent, and there is no terminal to ask in.", hint="Agree with --yes.")
        if not ask_yes_or_no(f"Share {name} with {guest}?", "Agree with --yes."):
            raise click.Abort
    view = out.link().do(annexes.share(name, guest))
    out.show(view, lambda: [_describe_sharing(view)], lambda: view.guests)


@command("unshare", "sublet annex unshare example bob")
@click.argument("name")
@click.argument("guest")
def unshare(out: Output, name: str, guest: str) -> None:
    """Stop sharing an annex with someone. Their sessions there are cancelled."""
    view = out.link().do(annexes.unshare(name, guest))
    out.show(view, lambda: [_describe_sharing(view)], lambda: view.guests)


def _describe_sharing(view: AnnexView) -> str:
    return (
        f"{view.name} is shared with {', '.join(view.guests)}."
        if view.guests
        else f"{view.name} is not shared with anyone."
    )
