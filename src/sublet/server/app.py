"""The HTTP application: one router per noun, directly on top of the service."""

from __future__ import annotations

import getpass
from typing import Any

from fastapi import FastAPI
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.routing import Mount

from sublet.access.api import access, accounts, audit, budgets, pledges, rules, usage
from sublet.annexes.api import access_point, annexes, dags, invitations, jobs, templates
from sublet.api import described
from sublet.api.answers import AnswerHeads
from sublet.api.people import Remembered
from sublet.api.problems import add_problems, answer_unexpected
from sublet.api.streams import Doorkeeper
from sublet.apps.api import apps, facilities, maintainers, trials
from sublet.apps.api import runs as app_runs
from sublet.archive.api import archive
from sublet.booking.api import (
    brokers,
    calendar,
    events,
    handovers,
    logs,
    offersets,
    platforms,
    results,
    sessions,
    systems,
)
from sublet.booking.api import series as bookings
from sublet.booking.api.connect import ConnectProxy
from sublet.booking.api.shown import ShownSessions
from sublet.data.api import caches, credentials, places, tus, uploads
from sublet.doors.cybergis import api as cybergis
from sublet.doors.ivoa import api as broker
from sublet.kernel.version import VERSION
from sublet.notices.api import hooks
from sublet.people.api import factors, groups, profiles, signing_in, tokens, well_known
from sublet.people.model.person import Person
from sublet.server import health, root, vosi
from sublet.server.apart import Apart
from sublet.server.bounded import Bounded
from sublet.server.cross_origin import CrossOrigin
from sublet.server.direct import call_directly
from sublet.server.heads import HeadIsGet
from sublet.server.metrics import count_answer
from sublet.server.routes import IndexedRouter
from sublet.server.turnstile import Turnstile
from sublet.server.versions import add_version
from sublet.service import Service
from sublet.web import pages

DESCRIPTION = """*When, and where, can I run this?* Offers you can accept, and then it runs.

The IVOA Execution Broker 1.0.7 is at the root, in JSON and YAML: `Accept` decides; where it says `*/*` or nothing, the
answer has the type of the body that was sent, else it is JSON. Sublet's own resources are under `/v1`, in JSON.
Problems are `application/problem+json` (RFC 9457) everywhere. Cookies authorise none of these addresses.

Every address that asks for, starts or extends sessions takes an `Idempotency-Key`, a text of your own such as a UUID:
the same request under the same key, sent again, does nothing anew and gets the same offers, session, booking or lease;
another request under it is a 422. What came to nothing, a NO or offers that nobody took while they stood, is asked
anew."""

NOUNS = (
    *(sessions, offersets, events, logs, results, platforms, pledges, systems, calendar),
    *(
        annexes,
        templates,
        jobs,
        dags,
        access_point,
        invitations,
        tokens,
        apps,
        maintainers,
        facilities,
        trials,
        hooks,
        credentials,
        uploads,
        tus,
        places,
        archive,
        bookings,
        handovers,
        caches,
        health,
        vosi,
    ),
    *(signing_in, factors, profiles, groups, well_known),
    *(access, rules, budgets, audit),
    *(accounts, usage, brokers),
    *(app_runs, cybergis),
)


def make_app(service: Service, owner: str = "") -> FastAPI:
    """Build the application for this service; `owner` is the person who connects by the Unix socket."""
    app = _make_described_app()
    app.state.service = service
    app.state.started = service.now()
    app.state.remembered = Remembered()
    app.state.shown = ShownSessions()
    app.state.doorkeeper = Doorkeeper()
    app.state.owner = Person(owner or getpass.getuser(), operator=True)
    app.state.connect = ConnectProxy(service.connections, service.secrets, service.session_notices)
    app.router.routes.append(Mount("/connect", app=app.state.connect))
    app.router.routes.append(root.ROUTE)
    pages.mount(app)
    app.add_middleware(Bounded)
    app.add_middleware(HeadIsGet)
    if service.settings.sessions_url:
        app.add_middleware(Apart, address=service.settings.sessions_url)
    app.add_middleware(ServerErrorMiddleware, handler=answer_unexpected)  # inside AnswerHeads, so that a 500 is counted
    app.add_middleware(AnswerHeads, change=lambda scope, head: add_version(scope, count_answer(scope, head)))
    app.add_middleware(Turnstile, measure_backlog=service.store.measure_backlog)
    if service.settings.origins:
        app.add_middleware(CrossOrigin, origins=service.settings.origins)
    add_problems(app)
    return app


def openapi_document() -> dict[str, Any]:
    """Return the document of /openapi.json, without a service."""
    return _make_described_app().openapi()


def _make_described_app() -> FastAPI:
    app = FastAPI(
        title="Sublet",
        version=VERSION,
        description=DESCRIPTION,
        docs_url=None,  # its pages would load scripts from other sites
        redoc_url=None,
        openapi_url=None,  # `describe_at` encodes it only once
        redirect_slashes=False,
    )
    app.router = IndexedRouter(routes=app.router.routes, redirect_slashes=False, dependency_overrides_provider=app)
    for noun in NOUNS:
        # not include_router(): it would build the routes again, at the first request
        app.router.routes.extend(call_directly(route) for route in noun.router.routes)
    app.router.routes.extend(broker.ROUTES)
    app.openapi = lambda: described.openapi(app, broker.ROUTES)  # type: ignore[method-assign]
    app.router.routes.append(described.describe_at("/openapi.json", app))
    return app
