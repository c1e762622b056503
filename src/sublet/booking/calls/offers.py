"""Asking, and answering offers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sublet.booking.views.offers import OfferSetPage, OfferSetView, PendingList, RejectedView, RunWayList
from sublet.client.call import Call, as_view, body_of, path_of, under

READ_SET = as_view(OfferSetView)


def ask(
    document: Mapping[str, Any] | str | bytes,
    *,
    keep_offers: bool = False,
    firm: bool = False,
    key: str | None = None,
) -> Call[OfferSetView]:
    """When and where can this run? A document (short form or full), or its YAML text.

    Earlier offers give way where they leave no room, unless `keep_offers`; `firm` ones don't give way to later ones.
    The same under the same `key` is the same answer, as long as something came of it or still can.
    """
    query, more = precedence(keep_offers=keep_offers, firm=firm), under(key)
    if isinstance(document, Mapping):
        return Call("POST", path_of("offersets"), READ_SET, query=query, body=body_of(document), more=more)
    text = document.encode() if isinstance(document, str) else document
    return Call("POST", path_of("offersets"), READ_SET, query=query, body=text, type="application/yaml", more=more)


def explain_ways(document: Mapping[str, Any]) -> Call[RunWayList]:
    """In which ways can this run, on which platforms, and why not in others? Nothing is held."""
    return Call("POST", path_of("offersets", "ways"), as_view(RunWayList), body=body_of(document))


def precedence(*, keep_offers: bool = False, firm: bool = False) -> dict[str, object]:
    """What is said of earlier and later offers; nothing if it is as usual."""
    return {"keep_offers": keep_offers or None, "firm": firm or None}


def open_offers() -> Call[OfferSetPage]:
    """All offers that can still be accepted."""
    return Call("GET", path_of("offersets"), as_view(OfferSetPage))


def reject_all() -> Call[RejectedView]:
    """Decline all of them."""
    return Call("DELETE", path_of("offersets"), as_view(RejectedView))


def reject_set(id: str) -> Call[RejectedView]:
    """Decline all offers of one answer."""
    return Call("DELETE", path_of("offersets", id), as_view(RejectedView))


def offerset(id: str) -> Call[OfferSetView]:
    """The offers that were made."""
    return Call("GET", path_of("offersets", id), READ_SET)


def pending() -> Call[PendingList]:
    """The caller's requests that are being answered, and who is still waited for."""
    return Call("GET", path_of("offersets", "pending"), as_view(PendingList))
