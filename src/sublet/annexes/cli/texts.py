"""Resource requests, leases and nodes, formatted for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from sublet.annexes.views.annexes import AnnexView, CostView, LeaseView, NodeStateView, PlanView, RowView
from sublet.cli.output import table
from sublet.cli.texts import away, costs, length, moment, round_number, size, when
from sublet.kernel.texts import count_text

SIGNS = {"ok": "ok", "warning": "note", "error": "NO", "unknown": "?"}
STATES = ("up", "starting", "queued", "asked", "dead", "ending", "ended")


def describe_plan(plan: PlanView) -> list[str]:
    """Describe a complete resource request: every line with its source and flag, the remarks, and the cost."""
    rows = [(SIGNS[row.state], row.field, row.value, row.source, _short(row.limit), row.flag) for row in plan.rows]
    lines = table(("", "WHAT", plan.lease, "FROM", "LIMIT", "CHANGED BY"), rows)
    for row in plan.rows:
        lines += _objection(row)
    verdict = ["It would be refused."] if plan.refused else []
    return [
        *lines,
        "",
        f"For its whole lifetime it costs {costs(plan.cost, plan.details.project)}.",
        *verdict,
    ]


def _objection(row: RowView) -> list[str]:
    if not row.message:
        return []
    return [
        "",
        f"{SIGNS[row.state]}: {row.field}: {row.message}",
        *([f"    possible: {row.nearest}"] if row.nearest else []),
    ]


def _short(limit: str) -> str:
    return limit if len(limit) <= 30 else f"{limit[:29].rstrip(', ')}…"


def describe_charge(cost: CostView | None) -> str:
    """Describe a cost briefly, for a column."""
    if cost is None:
        return ""
    if cost.charged is not None:
        return f"{round_number(cost.charged)} {cost.coin}"
    return f"{round_number(cost.node_hours)} node-hours"


def _sum_costs(leases: Iterable[LeaseView]) -> str:
    """Describe the total cost of leases, in each unit."""
    coins: dict[str, float] = {}
    for cost in (lease.cost for lease in leases if lease.cost and lease.started):
        amount, coin = (cost.node_hours, "node-hours") if cost.charged is None else (cost.charged, cost.coin)
        coins[coin] = coins.get(coin, 0.0) + amount
    return ", ".join(f"{round_number(amount)} {coin}" for coin, amount in coins.items())


def overview(annexes: Iterable[AnnexView], now: datetime) -> list[str]:
    """Format a table with one line for each annex."""
    rows = [_annex_row(annex, now) for annex in annexes]
    return (
        table(
            ("ANNEX", "STATE", "NODES", "CORES BUSY", "JOBS", "LEFT", "COST", "OPEN TO"),
            rows,
            keep=("STATE",),
            least=("OPEN TO", "COST"),
        )
        if rows
        else []
    )


def _annex_row(annex: AnnexView, now: datetime) -> tuple[str, ...]:
    nodes = [node for lease in annex.leases for node in lease.nodes]
    states = sorted({lease.state for lease in annex.leases}, key=STATES.index)
    left = [lease.until for lease in annex.leases if lease.until]
    return (
        annex.name,
        ", ".join(states) or "no leases",
        _nodes(annex.leases),
        _busy(nodes),
        _jobs(annex),
        length(max(left) - now) if left and max(left) > now else "",
        _sum_costs(annex.leases),
        _open(annex),
    )


def _nodes(leases: Iterable[LeaseView]) -> str:
    some = list(leases)
    up = sum(node.state == "up" for lease in some for node in lease.nodes)
    return f"{up} of {sum(lease.details.nodes or 1 for lease in some)}" if some else ""


def _busy(nodes: Iterable[NodeStateView]) -> str:
    up = [node for node in nodes if node.state == "up"]
    return f"{sum(node.busy for node in up)} of {sum(node.cores for node in up)}" if up else ""


def _jobs(annex: AnnexView) -> str:
    jobs = annex.jobs
    if jobs is None:
        return ""
    words = [(jobs.running, "run"), (jobs.idle, "wait"), (jobs.held, "held")]
    return ", ".join(f"{count} {word}" for count, word in words if count) or "none"


def _open(annex: AnnexView) -> str:
    whom = ["all your jobs"] if annex.open else ["sessions only"] if annex.sessions else []
    return ", ".join([*whom, *annex.guests])


def describe_annex(annex: AnnexView, now: datetime) -> Iterator[str]:
    """Describe an annex in full: its leases, their nodes, its jobs."""
    yield f"{annex.name}: {_whom(annex)}"
    if annex.trouble:
        yield f"note: {annex.trouble}"
    elif annex.jobs is not None:
        yield f"jobs that name it: {_jobs(annex)}"
    for lease in annex.leases:
        yield ""
        yield from _lease(lease, now)
    if not annex.leases:
        yield f"It has no lease now. `sublet annex history {annex.name}` lists its past leases."


def _whom(annex: AnnexView) -> str:
    jobs = "all your jobs" if annex.open else "your jobs that name it"
    jobs = "sessions only, at booked times" if annex.sessions else jobs
    guests = f", and contained jobs of {', '.join(annex.guests)}" if annex.guests else ""
    return f"for {jobs}{guests}"


def _lease(lease: LeaseView, now: datetime) -> Iterator[str]:
    details = lease.details
    where = "/".join(part for part in (details.system, lease.queue) if part)
    yield f"{lease.name} on {where}: {lease.state}{_time(lease, now)}"
    if lease.why:
        yield f"  {lease.why}"
    if lease.p50 and lease.p10 and lease.p90:
        yield f"  expected {when(lease.p50, now)}, between {moment(lease.p10, now)} and {moment(lease.p90, now)}"
    if lease.cost and lease.started:
        yield f"  has cost {costs(lease.cost, details.project)}"
    if lease.nodes:
        rows = [_node(node, now) for node in lease.nodes]
        head = ("NODE", "NAME", "STATE", "CORES BUSY", "JOBS", "SLOTS", "MEMORY", "GPUS", "HEARD", "WHY")
        yield from table(head, rows, margin="  ")


def _time(lease: LeaseView, now: datetime) -> str:
    if lease.ended:
        return f" {away(lease.ended, now)}"
    if lease.until and lease.started:
        left = f", {length(lease.until - now)} left" if lease.until > now else ""
        return f" for {length(now - lease.started)}{left}"
    return f", asked for {away(lease.created, now)}"


def _node(node: NodeStateView, now: datetime) -> tuple[str, ...]:
    busy = f"{node.busy} of {node.cores}" if node.cores else ""
    memory = size(node.memory) if node.memory else ""
    jobs = str(node.running) if node.state == "up" else ""
    heard = away(node.heard, now) if node.heard else ""
    slots, gpus = str(node.slots or ""), str(node.gpus or "")
    state = "draining" if node.draining and node.state == "up" else node.state
    return (str(node.number), node.node, state, busy, jobs, slots, memory, gpus, heard, node.why)


def describe_leases(leases: Iterable[LeaseView], now: datetime) -> list[str]:
    """Format leases as a table: what each was, and how it ended."""
    rows = [
        (
            lease.name,
            moment(lease.created, now),
            lease.state,
            "/".join(part for part in (lease.details.system, lease.queue) if part),
            count_text(lease.details.nodes or 1, "node"),
            length((lease.ended or now) - lease.started) if lease.started else "",
            describe_charge(lease.cost) if lease.started else "",
            lease.why,
        )
        for lease in leases
    ]
    return (
        table(("LEASE", "ASKED FOR", "STATE", "WHERE", "NODES", "LASTED", "COST", "WHY"), rows, least=("ASKED FOR",))
        if rows
        else []
    )
