"""Calls to run apps: for offers, or at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sublet.apps.views.runs import StartedView
from sublet.booking.calls.offers import precedence
from sublet.booking.views.offers import OfferSetView
from sublet.client.call import Call, as_view, body_of, path_of, under


def ask(app: str, wish: Mapping[str, Any], *, firm: bool = False, key: str | None = None) -> Call[OfferSetView]:
    """Request offers for an app."""
    path, query = path_of("offersets", "apps", app), precedence(firm=firm)
    return Call("POST", path, as_view(OfferSetView), query=query, body=body_of(dict(wish)), more=under(key))


def start(document: Mapping[str, Any], key: str | None = None) -> Call[StartedView]:
    """Run an app on the best offer, in the form of CyberGIS' roadmap."""
    return Call("POST", path_of("sessions"), as_view(StartedView), body=body_of(dict(document)), more=under(key))
