"""A broker that is no Sublet: it speaks IVOA's 1.0.7, or an older shape, as simply as one can, and can misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

Document = dict[str, Any]
KINDS = "https://www.purl.org/ivoa.net/Calycopis-openapi/schema/v1.0/kinds"


def instant(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


@dataclass
class ForeignBroker:
    """What it was asked, and what it answers."""

    is_older: bool = False
    delay: float = 0.0
    change: Callable[[Document], Any] = lambda offer: offer  # of each offer, before it is sent
    answer: Callable[[], Response] | None = None  # in place of any answer to a request
    accepts: bool = True  # else it says so, and does nothing
    without_body: bool = False  # a request is answered by an address alone
    asked: list[tuple[dict[str, str], Document]] = field(default_factory=list)
    updates: list[Document] = field(default_factory=list)
    sessions: dict[str, Document] = field(default_factory=dict)
    sets: dict[str, Document] = field(default_factory=dict)

    @property
    def app(self) -> Starlette:
        routes = [
            Route("/offersets/{id}", self.offerset),
            Route("/sessions/{id}", self.session),
            Route("/sessions/{id}", self.update, methods=["POST"]),
            Route("/offersets" if self.is_older else "/requests", self.request, methods=["POST"]),
        ]
        return Starlette(routes=routes)

    def phases(self) -> list[str]:
        """Where its sessions are."""
        return sorted(session["phase"] for session in self.sessions.values())

    async def request(self, request: Request) -> Response:
        self.asked.append((dict(request.headers), await request.json()))
        await asyncio.sleep(self.delay)
        if self.answer:
            return self.answer()
        offers = [self.change(self._offer()) for _ in range(2)]
        id = str(uuid4())
        self.sets[id] = self._component(id) | {"result": "YES", "offers": offers}
        body = b"" if self.without_body else None
        location = {"location": f"http://elsewhere.invalid/offersets/{id}"}
        return Response(body, 303, location) if body == b"" else JSONResponse(self.sets[id], 303, location)

    def _component(self, id: str, kind: str = "offerset/execution-offerset") -> Document:
        if self.is_older:
            return {"uuid": id, "type": f"EB/schema/types/{kind}-1.0"}
        return {"kind": f"{KINDS}/{kind}.yaml", "meta": {"uuid": id, "url": f"http://elsewhere.invalid/{id}"}}

    def _offer(self) -> Document:
        id, now = str(uuid4()), datetime.now(UTC)
        start = now + timedelta(minutes=10)
        running = {"start": f"{instant(start)}/PT30M", "duration": "PT2H"}
        amounts: Document = {"cores": {"min": 4, "max": 4}, "memory": {"min": 8, "max": 8}}
        if self.is_older:
            amounts = {name: {"requested": {"min": 1}, "offered": bounds} for name, bounds in amounts.items()}
        offer = self._component(id, "session/simple-execution-session") | {
            "phase": "PROPOSED" if self.is_older else "OFFERED",
            "expires": instant(now + timedelta(minutes=5)),
            "schedule": {"executing" if self.is_older else "available": running},
            "executable": {"kind": "urn:elsewhere:executable", "note": "as it came"},
            "compute": {"kind": f"{KINDS}/compute/simple-compute-resource.yaml", **amounts},
        }
        self.sessions[id] = offer
        return offer

    async def offerset(self, request: Request) -> Response:
        known = self.sets.get(request.path_params["id"])
        return JSONResponse(known) if known else JSONResponse({}, 404)

    async def session(self, request: Request) -> Response:
        known = self.sessions.get(request.path_params["id"])
        return JSONResponse(known) if known else JSONResponse({}, 404)

    async def update(self, request: Request) -> Response:
        update = await request.json()
        self.updates.append(update)
        if self.is_older != ("update" in update):
            return JSONResponse({"message": "which update?"}, 400)
        session = self.sessions[request.path_params["id"]]
        if delta := update.get("delta"):
            session["schedule"]["available"]["duration"] = f"PT{7200 + delta}S"
            return JSONResponse(session)
        wanted = update.get("update", update)["value"]
        if wanted != "ACCEPTED" or self.accepts:
            session["phase"] = "READY" if wanted == "ACCEPTED" and self.is_older else wanted
        return JSONResponse(session)
