"""The clients: each does one piece of work in its own way, and remembers what it was told."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from sublet.booking.calls import sessions
from sublet.booking.views.offers import OfferSetView
from sublet.booking.views.sessions import SessionView
from sublet.client import Client
from sublet.client.call import Call, HttpAnswer, as_view, body_of
from sublet.client.link import Link
from sublet.kernel.errors import SubletError
from tests.chaos.evidence import Told
from tests.chaos.kinds import SITE
from tests.chaos.plan import Work
from tests.chaos.program import write_program, write_request
from tests.chaos.world import World
from tests.nursery import typed

T = TypeVar("T")
OVER = frozenset({"COMPLETED", "FAILED", "CANCELLED", "REJECTED", "EXPIRED"})
PATIENCE = 45.0  # seconds that a client tries again where the service is away or broken
LONGEST = 240.0  # seconds that anything may take
PAUSE = 0.25
LOOK_EVERY = 0.6
SERVER_FAULT = 500


class Refusal(Exception):
    """The service said no."""


def do_work(world: World, work: Work) -> Told:
    """Have it run, cancel it if that is planned, and wait for its end."""
    try:
        told = WAYS[work.client](world, work)
    except (Refusal, SubletError) as error:
        return Told(work.name, refused=str(error) or type(error).__name__)
    if work.client == "run" or not told.ids:
        return told
    id = min(told.ids)
    if work.cancel_after is not None:
        time.sleep(work.cancel_after)
        told = replace(told, cancelled=True)
        try_again(world, lambda link: _cancel(link, id))
    return replace(told, end=_wait(world, id))


def try_again(world: World, act: Callable[[Link], T], seconds: float = PATIENCE) -> T:
    """Do it until a service answers that is neither away nor broken; each time at the next one."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return act(world.next_link())
        except SubletError as error:
            if error.status < SERVER_FAULT or time.monotonic() > deadline or world.over.is_set():
                raise
        time.sleep(PAUSE)


def _ask_by_http(world: World, work: Work) -> Told:
    """Ask under a key, accept, and do both again: the answers are the same."""
    body = body_of(write_request(work, _witness(world, work)))
    key = {"Idempotency-Key": work.name}
    call = Call("POST", "/v1/offersets", as_view(OfferSetView), body=body, more=key, query={"firm": True})
    ids = set()
    for _ in range(work.repeats):
        offered = try_again(world, lambda link: link.do(call))
        if not offered.offers:
            raise Refusal(f"no offers: {[str(reason) for reason in offered.reasons]}")
        offer = offered.offers[0].id
        world.submitting.set()
        ids.add(try_again(world, lambda link, offer=offer: link.do(sessions.accept(offer)).id))  # type: ignore[misc]
    return Told(work.name, ids=frozenset(ids))


def _ask_directly(world: World, work: Work) -> Told:
    """Ask and accept in one, under a key, and do so again."""
    body = body_of(write_request(work, _witness(world, work)))
    call = Call("POST", "/direct", _read_id, body=body, more={"Idempotency-Key": work.name})
    ids = set()
    for _ in range(work.repeats):
        world.submitting.set()
        ids.add(try_again(world, lambda link: link.do(call)))
    return Told(work.name, ids=frozenset(ids))


def _read_id(answer: HttpAnswer) -> str:
    return str(json.loads(answer.body)["meta"]["uuid"])


def _ask_by_sdk(world: World, work: Work) -> Told:
    """As a notebook does: an offer that was accepted without an answer is looked at again."""
    wishes = write_request(work, _witness(world, work))
    offered = try_again(world, lambda link: Client(socket=link.address.socket).ask(**wishes))  # type: ignore[arg-type]
    if not offered:
        raise Refusal(f"no offers: {[str(reason) for reason in offered.reasons]}")
    offer = offered[0].id
    world.submitting.set()
    accepted = try_again(world, lambda link: Client(socket=link.address.socket).session(offer).accept())
    return Told(work.name, ids=frozenset({accepted.id}))


def _type_run(world: World, work: Work) -> Told:
    """`sublet run`, as a person or a script types it: once, whatever happens."""
    request = write_request(work, _witness(world, work))
    environment = {
        **os.environ,
        "SUBLET_HOME": str(world.base / "client"),
        "SUBLET_URL": f"unix:{world.next_link().address.socket}",
    }
    words = ["run", "--name", work.name, "--platform", work.platform, "--cores", "1", "--memory", "64MiB"]
    words += ["--time", str(request["time"]), "--stay", "--", *write_program(work, _witness(world, work))]
    world.submitting.set()
    done = typed(words, environment, timeout=LONGEST)
    return Told(work.name, exit=done.returncode, refused=done.stderr.strip()[-300:] if "error: " in done.stderr else "")


def _cancel(link: Link, id: str) -> None:
    try:
        link.do(sessions.cancel(id))
    except SubletError as error:
        if error.status >= SERVER_FAULT:
            raise  # else it was over already


def _wait(world: World, id: str) -> tuple[str, int | None] | None:
    """How it ended, as this client is told; None: it is not over yet."""
    while not world.over.is_set():
        view: SessionView = try_again(world, lambda link: link.do(sessions.session(id)), LONGEST)
        if view.phase in OVER:
            return (view.end.kind, view.end.code) if view.end else (view.phase, None)
        time.sleep(LOOK_EVERY)
    return None


def _witness(world: World, work: Work) -> str:
    return world.cluster.witness if world.cluster and work.platform == SITE else str(world.witness)


WAYS: dict[str, Callable[[World, Work], Told]] = {
    "http": _ask_by_http,
    "direct": _ask_directly,
    "sdk": _ask_by_sdk,
    "run": _type_run,
}
