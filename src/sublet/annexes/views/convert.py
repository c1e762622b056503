"""Conversion of annexes, leases and plans to their views under /v1, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from sublet.annexes.model.annex import CARRIES, Annex, Details, Template
from sublet.annexes.model.lease_state import AnnexState, LeaseState
from sublet.annexes.model.leasing import LeasePlan
from sublet.annexes.views.annexes import (
    OWN_LINES,
    AnnexView,
    CostView,
    DetailsView,
    JobsView,
    LeaseView,
    NodeStateView,
    PlanView,
    RowView,
    TemplateView,
)
from sublet.booking.documents.scheduler import read_option
from sublet.booking.model.scheduler import SchedulerOptions, scheduler_specs
from sublet.kernel.document_fields import refuse_unknown_fields
from sublet.kernel.errors import BadRequest
from sublet.systems.model.allocation import Cost

LEAST = {"nodes": 1, "cores": 1, "memory": 1, "gpus": 0, "slots": 1}
MOST = 10_000_000_000_000_000  # for any amount


def details_of(view: DetailsView) -> Details:
    """Convert a request's details; raise BadRequest, which names the field, if a value isn't valid."""
    values: dict[str, Any] = {field.name: getattr(view, field.name) for field in fields(Details)}
    for name, least in LEAST.items():
        if values[name] is not None and not least <= values[name] <= MOST:
            raise BadRequest(detail=f"details.{name}: {values[name]} is not a number from {least} up.")
    for name in ("lifetime", "idle"):
        if values[name] is not None and values[name].total_seconds() <= 0:
            raise BadRequest(detail=f"details.{name}: it is no time at all.")
    if values["carry"] and values["carry"] not in CARRIES:
        raise BadRequest(detail=f"details.carry: it is one of {', '.join(CARRIES)}, or left out.")
    values["scheduler"] = _read_scheduler(view.scheduler)
    return Details(**values)


def _read_scheduler(given: Mapping[str, Any]) -> SchedulerOptions:
    """Read the scheduler options, except the queue and the project, which have their own fields."""
    specs = {name: spec for name, spec in scheduler_specs().items() if name not in OWN_LINES}
    refuse_unknown_fields(given, specs, "details.scheduler")
    return SchedulerOptions(**{name: read_option(value, specs[name]) for name, value in given.items()})


def details_view(details: Details) -> DetailsView:
    """Convert details to their view."""
    values: dict[str, Any] = {field.name: getattr(details, field.name) for field in fields(details)}
    return DetailsView(**values | {"scheduler": details.scheduler.document()})


def plan_view(annex: str, number: int, plan: LeasePlan) -> PlanView:
    """Convert a plan to its view."""
    return PlanView(
        annex=annex,
        lease=f"{annex}#{number}",
        refused=plan.refused,
        details=details_view(plan.details),
        rows=tuple(RowView(**asdict(row)) for row in plan.rows),
        cost=cost_view(plan.cost),
    )


def cost_view(cost: Cost) -> CostView:
    """Convert a cost to its view."""
    return CostView(**asdict(cost))


def annex_view(state: AnnexState) -> AnnexView:
    """Convert an annex and its state to a view."""
    annex, jobs = state.annex, state.jobs
    return AnnexView(
        id=annex.id,
        name=annex.name,
        person=annex.person,
        created=annex.created,
        open=annex.open,
        sessions=annex.sessions,
        guests=annex.guests,
        leases=tuple(lease_view(annex, lease) for lease in state.leases),
        jobs=JobsView(idle=jobs.idle, running=jobs.running, held=jobs.held) if jobs else None,
        trouble=state.trouble,
    )


def lease_view(annex: Annex, state: LeaseState) -> LeaseView:
    """Convert a lease and its state to a view."""
    lease, session, expected = state.lease, state.session, state.expected
    return LeaseView(
        id=lease.id,
        name=f"{annex.name}#{lease.number}",
        number=lease.number,
        state=state.state,
        why=state.why,
        details=details_view(lease.details),
        created=lease.created,
        session=lease.session,
        job=session.job if session else "",
        phase=session.phase.value if session else "",
        queue=session.offer.queue if session else lease.details.queue,
        p10=expected.p10 if expected else None,
        p50=expected.p50 if expected else None,
        p90=expected.p90 if expected else None,
        started=session.started if session else None,
        until=session.until if session else None,
        ended=lease.ended,
        nodes=tuple(NodeStateView(**asdict(node)) for node in state.nodes),
        cost=cost_view(state.cost) if state.cost else None,
    )


def template_view(template: Template) -> TemplateView:
    """Convert a template to its view."""
    return TemplateView(name=template.name, details=details_view(template.details), changed=template.changed)
