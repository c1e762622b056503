"""Commands for DAGs of HTCondor jobs: submit, list, status, remove; and provisioners, which lease an annex for one."""

from __future__ import annotations

import re
from collections.abc import Iterable

import click

from sublet.annexes.calls import dags
from sublet.annexes.cli.dag_provisioner import provision, provisioner
from sublet.annexes.cli.refusals import refuse_lines_of_dag
from sublet.annexes.cli.submitting import submitting, tool
from sublet.annexes.views.jobs import DagView
from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.output import Output, pairs, table

CLUSTER = re.compile(r"submitted to cluster (\d+)")
COLUMNS = ("done", "queued", "ready", "failed", "total")


@click.group("dag", cls=CommandGroup, epilog=Example("sublet dag submit work.dag --annex example"))
def dag() -> None:
    """Submit DAGs of HTCondor jobs for an annex."""


@command(
    "submit", "sublet dag submit work.dag --annex example", "sublet dag submit work.dag --annex example -- -maxjobs 5"
)
@click.option("--annex", required=True, metavar="NAME", help="The annex that every node is to run on.")
@click.argument("file", metavar="FILE")
@click.argument("words", nargs=-1, metavar="[-- OPTIONS…]", type=click.UNPROCESSED)
def submit(out: Output, annex: str, file: str, words: tuple[str, ...]) -> None:
    """Submit a DAG for an annex: its nodes, splices, sub-DAGs and inline descriptions all go there.

    condor_submit_dag reads the file, in this directory; options after -- are passed to it. The annex need
    not have nodes yet: a provisioner can lease them (`sublet dag provisioner`).
    """
    refuse_lines_of_dag(file, words)
    link = out.link()
    access = submitting(out, link, annex)
    answer = tool(access, "condor_submit_dag", *words, file)
    matched = CLUSTER.search(answer)
    if not matched:
        click.echo(answer, nl=False)
        return
    id = matched[1]
    out.show({"cluster": int(id), "annex": annex}, lambda: [f"DAG {id} is for {annex}."], lambda: [id])
    if out.for_people:
        out.note(f"Look at it with: sublet dag status {id}")


@command("list", "sublet dag list")
def list_(out: Output) -> None:
    """List your running DAGs."""
    view = out.link().do(dags.dags())
    out.show(view, lambda: _table(view.items), lambda: (dag.id for dag in view.items))
    if not view.items and out.for_people:
        out.note("No DAGs are running.")


@command("status", "sublet dag status 12")
@click.argument("id", metavar="DAG")
def status(out: Output, id: str) -> None:
    """Show how far a DAG is, or how it ended."""
    view = out.link().do(dags.dag(id))
    counts = ", ".join(f"{getattr(view, name)} {name}" for name in COLUMNS)
    ended = "" if view.code is None else f", with exit code {view.code}"
    facts = {"DAG": f"{view.id} ({view.name})", "state": f"{view.state}{ended}", "annex": view.annex, "nodes": counts}
    out.show(view, lambda: pairs([*facts.items(), ("why", view.why)]), lambda: [view.state])


@command("remove", "sublet dag remove 12")
@click.argument("id", metavar="DAG")
def remove(out: Output, id: str) -> None:
    """End a DAG, with all its jobs."""
    out.link().do(dags.remove(id))
    out.show({"removed": id}, lambda: [f"DAG {id} is removed."], lambda: [id])


def _table(views: Iterable[DagView]) -> list[str]:
    rows = [
        (view.id, view.state, view.annex, view.name, *(str(getattr(view, name)) for name in COLUMNS), view.why)
        for view in views
    ]
    heads = ("DAG", "STATE", "ANNEX", "NAME", *(name.upper() for name in COLUMNS), "WHY")
    return table(heads, rows) if rows else []


for one in (submit, list_, status, remove, provisioner, provision):
    dag.add_command(one)
