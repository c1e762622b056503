"""Systems behind platforms: probing them, and their record of predicted starts."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import person_of, service_of
from sublet.booking.model.estimate import ENOUGH, RECENT
from sublet.booking.views.systems import DifferenceView, LiveNodeView, LiveQueueView, ProbeView, RecordView, TrackView
from sublet.kernel.errors import OperatorsOnly
from sublet.systems.model.probe import Probe
from sublet.systems.model.system import Queue

router = APIRouter(prefix="/v1/systems", tags=["Systems"])


@router.post("/{name}/probe", response_model=ProbeView, responses=described.problems(401, 403, 404, 409, 503))
async def probe(request: Request, name: str) -> Response:
    """Ask a live system for its queues, limits, nodes, accounts and tools, and compare them with what was known.

    For operators: it goes over their login.
    """
    if not (await person_of(request)).operator:
        raise OperatorsOnly
    return json_response(_describe_probe(await service_of(request).probing.probe(name)))


@router.get("/{name}/record", response_model=RecordView, responses=described.problems(401, 403, 404))
async def record(request: Request, name: str) -> Response:
    """How a system's predicted starts came true, by queue and size."""
    tracks = await service_of(request).probing.record(name, await person_of(request))
    items = tuple(
        TrackView(
            queue=track.queue, size=track.size, samples=track.samples, p10=track.p10, p50=track.p50, p90=track.p90
        )
        for track in tracks
    )
    notes = tuple(service_of(request).probing.notes(name))
    return json_response(RecordView(system=name, days=RECENT.days, enough=ENOUGH, items=items, notes=notes))


def _describe_probe(probe: Probe) -> ProbeView:
    live = probe.live
    return ProbeView(
        system=probe.system,
        as_of=live.as_of,
        version=live.version,
        default_queue=live.default_queue,
        accounts=live.accounts,
        tools=dict(live.tools),
        gpu_types=live.choices.gpu_types,
        features=live.choices.features,
        licenses=dict(live.choices.licenses or {}),
        can_reserve=live.can_reserve,
        queues=tuple(map(_queue, probe.queues)),
        differences=tuple(
            DifferenceView(
                subject=each.subject,
                what=each.what,
                known=each.known,
                live=each.live,
                state=each.state,
                nodes_of=each.nodes_of,
            )
            for each in probe.differences
        ),
    )


def _queue(queue: Queue) -> LiveQueueView:
    return LiveQueueView(
        name=queue.name,
        sharing=queue.sharing,
        nodes=tuple(
            LiveNodeView(
                name=kind.name, cores=kind.cores or 0, memory=kind.memory or 0, gpus=kind.gpus, count=kind.count or 0
            )
            for kind in queue.nodes
        ),
        min_nodes=queue.min_nodes,
        max_nodes=queue.max_nodes,
        max_time=queue.max_time,
        max_cores=queue.max_cores,
        max_gpus=queue.max_gpus,
        per_user={quota.what: quota.most for quota in queue.quotas if quota.per == "user"},
    )
