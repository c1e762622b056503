"""Commands that lease nodes for an annex: show the plan, confirm, sign in, submit, and wait for the queue."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click

from sublet.annexes.calls import annexes
from sublet.annexes.cli.details import details, read_details
from sublet.annexes.cli.texts import describe_plan
from sublet.annexes.views.annexes import LeaseAsk, LeaseView, PlanView
from sublet.cli.command import command
from sublet.cli.interrupts import Interrupts
from sublet.cli.keys import key_option
from sublet.cli.output import Output
from sublet.cli.progress import Progress
from sublet.cli.prompts import ask_yes_or_no
from sublet.client.annex_facts import is_up
from sublet.client.call import Call
from sublet.client.link import Link
from sublet.kernel.errors import LeaseRefused, SubletError
from sublet.kernel.home import sublet_home
from sublet.systems.cli.logins import login_of
from sublet.systems.own import Systems

LOOK_EVERY = 0.3  # seconds
PATIENCE = 180.0  # seconds for a submitted request to be in the queue
SENDING = (
    click.option("--template", metavar="NAME", default="", help="Take missing details from this template."),
    click.option("--wait", is_flag=True, help="Return when all nodes have reported, not when they are queued."),
    click.option("--yes", "-y", is_flag=True, help="Send it without asking."),
    click.option("--dry-run", is_flag=True, help="Show it, and send nothing."),
    key_option,
)


def sending(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for submitting a resource request to a command."""
    for option in reversed(SENDING):
        function = option(function)
    return details(function)


@command(
    "create",
    "sublet annex create example --system expanse --queue compute --nodes 2 --lifetime 4h",
    "sublet annex create example --template big --wait",
)
@click.argument("name")
@sending
def create(out: Output, name: str, template: str, **given: Any) -> int:
    """Lease nodes, and give them a name that jobs can ask for.

    Details that you don't give come from the template, or from the last time. The whole resource request is shown
    first: where each line comes from, the flag that changes it, what the system would refuse, and what it costs. ssh
    asks for the second factor in this terminal, if you are not signed in. No jobs need to be waiting.
    """
    how = _how(given)
    return _make_lease(out, LeaseAsk(name=name, template=template, details=read_details(given)), annexes.create, **how)


@command("add", "sublet annex add example --nodes 4")
@click.argument("name")
@sending
def add(out: Output, name: str, template: str, **given: Any) -> int:
    """Lease more nodes under the same name; details that you don't give are those of the last time."""
    how = _how(given)
    return _make_lease(out, LeaseAsk(name=name, template=template, details=read_details(given)), annexes.add, **how)


@command("clone", "sublet annex clone example second", "sublet annex clone example#2 second --nodes 4")
@click.argument("like", metavar="NAME[#N]")
@click.argument("name", metavar="NEW")
@sending
def clone(out: Output, like: str, name: str, template: str, **given: Any) -> int:
    """Make another annex with the same details."""
    how = _how(given)
    return _make_lease(
        out, LeaseAsk(name=name, like=like, template=template, details=read_details(given)), annexes.create, **how
    )


def _how(given: dict[str, Any]) -> dict[str, Any]:
    return {name: given.pop(name) for name in ("wait", "yes", "dry_run", "key")}


def _make_lease(
    out: Output,
    ask: LeaseAsk,
    send: Callable[[LeaseAsk, str | None], Any],
    *,
    wait: bool,
    yes: bool,
    dry_run: bool,
    key: str | None,
) -> int:
    link = out.link()
    plan = link.do(annexes.plan(ask))
    if dry_run:
        out.show(plan, lambda: describe_plan(plan), lambda: [plan.lease])
        return 1 if plan.refused else 0
    for line in describe_plan(plan):
        out.note(line)
    _agree(out, plan, yes)
    whole = LeaseAsk(name=ask.name, details=plan.details)
    lease = _run_signed_in(out, link, plan.details.system, lambda: _send(out, link, send(whole, key), wait))
    out.show(lease, lambda: [_result(lease)], lambda: [lease.name])
    if out.for_people:
        out.note(f"Look at it with: sublet annex status {ask.name}")
    return 0


def _agree(out: Output, plan: PlanView, yes: bool) -> None:
    """Ask the person to confirm the request, which is charged to them; raise LeaseRefused if it would be refused."""
    if plan.refused:
        wrong = [row for row in plan.rows if row.state == "error"]
        nearest = "; ".join(row.nearest for row in wrong if row.nearest)
        raise LeaseRefused(why=" ".join(row.message for row in wrong), hint=f"Possible: {nearest}." if nearest else "")
    if yes:
        return
    if not out.can_ask:
        raise SubletError(
            "This needs your confirmation, and there is no terminal to ask in.", hint="Confirm with --yes."
        )
    if not ask_yes_or_no("Send it?", "Confirm with --yes.", default=True):
        raise click.Abort


def _run_signed_in(out: Output, link: Link, system: str, work: Callable[[], LeaseView]) -> LeaseView:
    """Run the work over the system's login, which is opened in this terminal if needed."""
    if not link.address.local or system not in Systems(sublet_home().systems).own_names():
        return work()
    import asyncio  # slow to import, and only needed for logins

    login = login_of(system)
    if login.shared:
        if not asyncio.run(login.check()):
            out.note(f"Signing in to {system}; what you type goes to ssh alone.")
            asyncio.run(login.open())
        return work()
    out.note(f"{system} allows no shared connection: this login is for this request alone.")

    async def visit() -> LeaseView:
        async with login.once():
            return await asyncio.to_thread(work)

    return asyncio.run(visit())


def _send(out: Output, link: Link, call: Call[LeaseView], wait: bool) -> LeaseView:
    """Submit the request and wait until it is in the queue; Ctrl-C is delayed until the lease's name is known."""
    with Interrupts() as interrupts:
        interrupts.hold()
        lease = link.do(call)
        return _wait_until_sent(out, link, lease, interrupts, wait)


def _wait_until_sent(out: Output, link: Link, lease: LeaseView, interrupts: Interrupts, wait: bool) -> LeaseView:
    """Poll the lease until it is in the queue or, with `wait`, until all its nodes have reported."""
    progress = Progress(wanted=out.for_people)
    deadline = time.monotonic() + PATIENCE
    try:
        interrupts.release()
        while not (is_up(lease) if wait else lease.job):
            if lease.state == "ended":
                raise LeaseRefused(why=lease.why)
            if not wait and time.monotonic() > deadline:
                out.note(f"{lease.name} is not in the queue yet: {lease.why}")
                break
            progress.show(f"{lease.name}: {lease.state}{f', {lease.why}' if lease.why else ''}")
            time.sleep(LOOK_EVERY)
            lease = link.do(annexes.annex(lease.name)).leases[0]
    except KeyboardInterrupt:
        progress.clear()
        out.note(f"{lease.name} goes on. Take it back with: sublet annex cancel {lease.name}")
        raise
    finally:
        progress.end()
    return lease


def _result(lease: LeaseView) -> str:
    if is_up(lease):
        return f"{lease.name} is up."
    return f"{lease.name} is in the queue." if lease.job else f"{lease.name} is asked for."
