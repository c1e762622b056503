"""The page on which operators list, add and remove access rules."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from sublet.access.model.access import NOUNS
from sublet.access.model.access_words import limits_text
from sublet.access.pages.limits import LABELS, read_grant
from sublet.access.rules import ChangedRules
from sublet.api.people import host_of, service_of
from sublet.kernel.errors import SubletError
from sublet.web.confirming import Confirmation, confirm_page, describe_affected_sessions, is_confirmed
from sublet.web.drawing import page
from sublet.web.entry import Visitor
from sublet.web.reading import read_form, visitor


async def look(request: Request) -> Response:
    """Show all rules, and a form to add one, which a link may have filled in partly."""
    filled = {field: request.query_params.get(field, "") for field in ("who", "noun", "name")}
    return await _page(request, await visitor(request), {field: text for field, text in filled.items() if text})


async def _page(
    request: Request,
    who: Visitor,
    form: dict[str, str],
    *,
    changed: ChangedRules | None = None,
    wrong: SubletError | None = None,
) -> Response:
    service = service_of(request)
    return page(
        request,
        "rules.html",
        who,
        wrong.status if wrong else 200,
        rules=await service.access.rules.rules(who.person),
        now=service.now(),
        form=form,
        changed=changed,
        wrong=wrong,
        nouns=NOUNS,
        labels=LABELS,
        limits_text=limits_text,
    )


async def add(request: Request) -> Response:
    """Add a rule, and list the sessions that continue without access."""
    who, form = await read_form(request)
    service = service_of(request)
    fields: dict[str, Any] = {field: form.get(field, "").strip() for field in ("effect", "who", "noun", "name", "note")}
    try:
        most = read_grant(form, service.now())
        changed = await service.access.rules.add_rule(who.person, **fields, **most, host=host_of(request))
    except SubletError as error:
        return await _page(request, who, form, wrong=error)
    return await _page(request, who, {}, changed=changed)


async def remove(request: Request) -> Response:
    """Remove a rule after confirmation, and list the sessions that continue without access."""
    who, form = await read_form(request)
    service, id = service_of(request), request.path_params["id"]
    if not is_confirmed(form):
        return confirm_page(
            request, who, _question(await service.access.rules.preview_rule_removal(id, who.person)), form
        )
    changed = await service.access.rules.remove_rule(id, who.person, host_of(request))
    return await _page(request, who, {}, changed=changed)


def _question(changed: ChangedRules) -> Confirmation:
    rule = changed.rule
    effects = ["This takes effect at once, for everyone whom the rule covers."]
    if changed.running:
        effects.append("These sessions go on, although their owners lose access:")
    return Confirmation(
        f"Remove the rule that {VERBS[rule.effect]} {rule.who} {rule.noun} {rule.name}?",
        tuple(effects),
        "Remove the rule",
        "/web/rules",
        describe_affected_sessions(changed.running),
    )


VERBS = {"allow": "allows", "deny": "denies"}
