"""Commands that drain an annex, a lease or some of its nodes, and undo that."""

from __future__ import annotations

import click

from sublet.annexes.calls import annexes
from sublet.annexes.views.annexes import AnnexView, LeaseView
from sublet.cli.command import command
from sublet.cli.output import Output
from sublet.kernel.texts import count_text

NODES = click.option("--node", "nodes", metavar="NODE", multiple=True, help="Only this node, by its number or name.")


@command(
    "drain",
    "sublet annex drain example",
    "sublet annex drain example#2 --node c1",
    "sublet annex drain example#2 --node 1",
)
@click.argument("name", metavar="NAME[#N]")
@NODES
def drain(out: Output, name: str, nodes: tuple[str, ...]) -> None:
    """Stop an annex, a lease or some nodes from taking new jobs. Running jobs finish; then each node is given back.

    Nodes learn of it within ten seconds. A node without jobs ends at once, and is no longer charged.
    """
    view = out.link().do(annexes.drain(name, nodes))
    out.show(view, lambda: [_describe_drain(lease) for lease in view.leases], lambda: _names(view))
    if out.for_people:
        words = "".join(f" --node {node}" for node in nodes)
        out.note(f"Take that back with: sublet annex undrain {name}{words}")


@command("undrain", "sublet annex undrain example", "sublet annex undrain example#2 --node c1")
@click.argument("name", metavar="NAME[#N]")
@NODES
def undrain(out: Output, name: str, nodes: tuple[str, ...]) -> None:
    """Let a draining annex, lease or node take jobs again. Nodes that have ended stay ended."""
    view = out.link().do(annexes.undrain(name, nodes))
    out.show(view, lambda: [_show_undrained(lease) for lease in view.leases], lambda: _names(view))


def _describe_drain(lease: LeaseView) -> str:
    draining = [node for node in lease.nodes if node.draining]
    up = [node for node in lease.nodes if node.state != "ended"]
    if len(draining) == len(up):
        return f"{lease.name} takes no new jobs, and ends when its running jobs are done."
    names = ", ".join(node.node or str(node.number) for node in draining)
    return f"Of {lease.name} {names} {'takes' if len(draining) == 1 else 'take'} no new jobs."


def _show_undrained(lease: LeaseView) -> str:
    count = sum(not node.draining and node.state != "ended" for node in lease.nodes)
    return f"{lease.name} takes new jobs on {count_text(count, 'node')}."


def _names(view: AnnexView) -> list[str]:
    return [lease.name for lease in view.leases]
