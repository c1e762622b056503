"""The HTTP application: one router per noun, and nothing between them and the service."""

from __future__ import annotations

import getpass
from typing import Any

from fastapi import FastAPI
from starlette.routing import Mount

from sublet.api import (
    access,
    access_point,
    accounts,
    annexes,
    app_runs,
    apps,
    audit,
    broker,
    calendar,
    cybergis,
    dags,
    described,
    events,
    facilities,
    factors,
    groups,
    health,
    hooks,
    invitations,
    jobs,
    logs,
    maintainers,
    offersets,
    platforms,
    pledges,
    profiles,
    results,
    root,
    rules,
    sessions,
    signing_in,
    systems,
    templates,
    tokens,
    trials,
    usage,
)
from sublet.api.answers import AnswerHeads
from sublet.api.apart import Apart
from sublet.api.bounded import Bounded
from sublet.api.connect import Connect
from sublet.api.heads import HeadIsGet
from sublet.api.metrics import count_answer
from sublet.api.people import Remembered
from sublet.api.problems import add_problems
from sublet.api.streams import Doorkeeper
from sublet.api.turnstile import Turnstile
from sublet.api.versions import add_version
from sublet.service.person import Person
from sublet.service.service import Service
from sublet.version import VERSION
from sublet.web import pages

DESCRIPTION = """*When, and where, can I run this?* Offers you can accept, and then it runs.

The IVOA Execution Broker 1.0.7 is at the root, in JSON and YAML: `Accept` decides; where it says `*/*` or nothing, the
answer has the type of the body that was sent, else it is JSON. Sublet's own resources are under `/v1`, in JSON.
Problems are `application/problem+json` (RFC 9457) everywhere. Cookies authorise none of these addresses.

Every address that starts something takes an `Idempotency-Key`, a text of your own such as a UUID: the same request
under the same key, sent again, starts nothing anew and gets the same offers, session or lease; another request under
it is a 422. What came to nothing, a NO or offers that nobody took while they stood, is asked anew."""

NOUNS = (
    *(offersets, sessions, logs, results, events, platforms, pledges, systems, calendar),
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
        health,
    ),
    *(signing_in, factors, profiles, groups),
    *(access, rules, audit),
    *(accounts, usage),
    *(app_runs, cybergis),
)


def make_app(service: Service, owner: str = "") -> FastAPI:
    """The application that serves this service; `owner` is who comes by the Unix socket."""
    app = _routed()
    app.state.service = service
    app.state.remembered = Remembered()
    app.state.doorkeeper = Doorkeeper()
    app.state.owner = Person(owner or getpass.getuser(), operator=True)
    app.state.connect = Connect(service.connections, service.secrets)
    app.router.routes.append(Mount("/connect", app=app.state.connect))
    app.router.routes.append(root.ROUTE)
    pages.mount(app)
    app.add_middleware(Bounded)
    app.add_middleware(HeadIsGet)
    app.add_middleware(Apart, address=service.settings.sessions_url)
    app.add_middleware(AnswerHeads, change=count_answer)
    app.add_middleware(AnswerHeads, change=add_version)
    app.add_middleware(Turnstile)
    add_problems(app)
    return app


def openapi_document() -> dict[str, Any]:
    """What /openapi.json says, without a service."""
    return _routed().openapi()


def _routed() -> FastAPI:
    app = FastAPI(
        title="Sublet",
        version=VERSION,
        description=DESCRIPTION,
        docs_url=None,  # its pages would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    app.router.routes.extend(broker.ROUTES)
    for noun in NOUNS:
        app.router.routes.extend(noun.router.routes)  # included they would be made anew, at the first request
    app.openapi = lambda: described.openapi(app)  # type: ignore[method-assign]
    return app
