"""Calls that ask for offers, list them and reject them."""

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
    """Ask when and where a request can run; `document` is the short or full form, or its YAML text.

    Earlier offers give way where they leave no room, unless `keep_offers`; `firm` offers don't give way to later ones.
    Asking again with the same `key` returns the same answer, as long as something came of it or still can.
    """
    query, more = precedence(keep_offers=keep_offers, firm=firm), under(key)
    if isinstance(document, Mapping):
        return Call("POST", path_of("offersets"), READ_SET, query=query, body=body_of(document), more=more)
    text = document.encode() if isinstance(document, str) else document
    return Call("POST", path_of("offersets"), READ_SET, query=query, body=text, type="application/yaml", more=more)


def explain_ways(document: Mapping[str, Any]) -> Call[RunWayList]:
    """Ask in which ways a request can run, on which platforms, and why not in others; nothing is held."""
    return Call("POST", path_of("offersets", "ways"), as_view(RunWayList), body=body_of(document))


def precedence(*, keep_offers: bool = False, firm: bool = False) -> dict[str, object]:
    """Return the query parameters for earlier and later offers; None for the defaults."""
    return {"keep_offers": keep_offers or None, "firm": firm or None}


def open_offers() -> Call[OfferSetPage]:
    """List all offers that can still be accepted."""
    return Call("GET", path_of("offersets"), as_view(OfferSetPage))


def reject_all() -> Call[RejectedView]:
    """Reject all open offers."""
    return Call("DELETE", path_of("offersets"), as_view(RejectedView))


def reject_set(id: str) -> Call[RejectedView]:
    """Reject all offers of one offer set."""
    return Call("DELETE", path_of("offersets", id), as_view(RejectedView))


def offerset(id: str) -> Call[OfferSetView]:
    """Return an offer set."""
    return Call("GET", path_of("offersets", id), READ_SET)


def pending() -> Call[PendingList]:
    """List the caller's requests that are being answered, and the platforms that haven't answered."""
    return Call("GET", path_of("offersets", "pending"), as_view(PendingList))
