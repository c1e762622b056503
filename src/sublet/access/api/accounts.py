"""Community accounts over HTTP: everybody may list them; operators add, change, check and remove them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.access.accounts import AccountState
from sublet.access.model.account import Account, fingerprint, host_key
from sublet.access.model.hpc_json import ImportPlan
from sublet.access.views.accounts import (
    AccountAsk,
    AccountChange,
    AccountList,
    AccountPlan,
    AccountPlanList,
    AccountRule,
    AccountView,
    HostAsk,
    HostKeyList,
    HostKeyView,
    HpcAsk,
    NoteView,
    RekeyView,
)
from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import host_of, person_of, service_of
from sublet.api.private import check_private
from sublet.people.model.person import Person

router = APIRouter(prefix="/v1", tags=["Accounts"])
APART = ("key", "passphrase", "rules")  # given with an account, but not fields of it
SHOWN = (
    *("host", "port", "user", "connector", "directory", "queue", "project", "qos", "options", "modules", "wckey"),
    *("public", "created", "changed", "by"),
)


@router.get("/accounts", response_model=AccountList, responses=described.problems(401))
async def accounts(request: Request) -> Response:
    """All accounts: their names and what they are; to who may use one, how many are there.

    Operators see how they are reached, nobody sees a private key.
    """
    person = await person_of(request)
    states = await service_of(request).access.accounts.accounts(person)
    return json_response(AccountList(items=tuple(_view(state, person) for state in states)))


@router.get("/accounts/{name}", response_model=AccountView, responses=described.problems(401, 404))
async def account(request: Request, name: str) -> Response:
    """One account."""
    person = await person_of(request)
    return json_response(_view(await service_of(request).access.accounts.account(name, person), person))


@router.post(
    "/accounts", status_code=201, response_model=AccountView, responses=described.problems(400, 401, 403, 409, 503)
)
async def add(request: Request, ask: AccountAsk) -> Response:
    """Add an account; it is a platform at once. For operators, on the service's own machine or by https."""
    person = await person_of(request)
    check_private(request)
    given = {name: value for name, value in _plain(ask).items() if name not in APART}
    keys = tuple(host_key(line) or line for line in ask.host_keys)
    made = Account(**{**given, "host_keys": keys})
    service = service_of(request)
    rules = [asdict(rule) for rule in ask.rules]
    await service.access.accounts.add_account(person, made, ask.key, ask.passphrase, rules=rules, host=host_of(request))
    return json_response(_view(await service.access.accounts.account(made.name, person), person), 201)


@router.patch(
    "/accounts/{name}", response_model=AccountView, responses=described.problems(400, 401, 403, 404, 409, 503)
)
async def change(request: Request, name: str, ask: AccountChange) -> Response:
    """Change an account, or give it another key; for operators."""
    person = await person_of(request)
    check_private(request)
    given = {field: value for field, value in _plain(ask).items() if value is not None and field not in APART}
    if ask.host_keys is not None:
        given["host_keys"] = tuple(host_key(line) or line for line in ask.host_keys)
    service = service_of(request)
    await service.access.accounts.change_account(
        person, name, given, ask.key or "", ask.passphrase or "", host=host_of(request)
    )
    return json_response(_view(await service.access.accounts.account(name, person), person))


@router.delete("/accounts/{name}", status_code=204, responses=described.problems(401, 403, 404, 409))
async def remove(request: Request, name: str) -> Response:
    """Forget an account and its key; what was run under it stays recorded. For operators."""
    await service_of(request).access.accounts.remove_account(await person_of(request), name, host=host_of(request))
    return Response(status_code=204)


@router.post("/accounts/{name}/check", response_model=AccountView, responses=described.problems(401, 403, 404, 503))
async def check(request: Request, name: str) -> Response:
    """Sign in by it now, and look around: `problem` says what is wrong. For operators."""
    person = await person_of(request)
    return json_response(_view(await service_of(request).access.accounts.check_account(person, name), person))


@router.post("/account-plans", response_model=AccountPlanList, responses=described.problems(400, 401, 403))
async def plan(request: Request, ask: HpcAsk) -> Response:
    """What the `hpc` objects of CyberGIS would be here, field by field; nothing is changed. For operators."""
    plans = service_of(request).access.accounts.plans(await person_of(request), ask.document)
    return json_response(AccountPlanList(items=tuple(map(_plan, plans))))


@router.post("/host-keys", response_model=HostKeyList, responses=described.problems(400, 401, 403, 409, 503))
async def host_keys(request: Request, ask: HostAsk) -> Response:
    """The keys that a host shows, for a person to compare with what its centre publishes. For operators."""
    keys = await service_of(request).access.accounts.host_keys(await person_of(request), ask.host, ask.port)
    return json_response(HostKeyList(items=tuple(HostKeyView(key=key, fingerprint=fingerprint(key)) for key in keys)))


@router.post("/vault/rekey", response_model=RekeyView, responses=described.problems(401, 403, 503))
async def rekey(request: Request) -> Response:
    """Seal all that is stored with the newest master key. For operators."""
    done = await service_of(request).access.rekeying.rekey(await person_of(request), host=host_of(request))
    return json_response(RekeyView(sealed=done))


def _view(state: AccountState, person: Person) -> AccountView:
    account, there = state.account, [turn for turn in state.turns if turn.taken]
    seen: dict[str, Any] = {
        "name": account.name,
        "description": account.description,
        "kind": account.platform,
        "capacity": account.capacity if state.usable else 0,
        "there": len(there),
        "waiting": len(state.turns) - len(there),
        "mine": sum(turn.person == person.name for turn in there),
        "problem": state.trouble,
    }
    if person.operator:
        seen |= {name: getattr(account, name) for name in SHOWN}
        seen |= {"globus": dict(account.globus), "certificate": bool(account.certificate), "key": account.fingerprint}
        seen["host_keys"] = tuple(map(fingerprint, account.host_keys))
    return AccountView(**seen)


def _plan(plan: ImportPlan) -> AccountPlan:
    notes = tuple(NoteView(field=note.field, state=note.state, words=note.words) for note in plan.notes)
    rules = tuple(AccountRule(**rule) for rule in plan.rules)
    return AccountPlan(
        name=plan.name,
        fields=plan.fields,
        key_path=plan.key_path,
        notes=notes,
        rules=rules,
        refused=plan.refused,
        problem=plan.problem,
    )


def _plain(ask: AccountAsk | AccountChange) -> dict[str, Any]:
    return {name: getattr(ask, name) for name in ask.__dataclass_fields__}
