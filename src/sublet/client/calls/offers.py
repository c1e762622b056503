"""Asking, and answering offers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sublet.client.call import Call, as_view, body_of, path_of
from sublet.wire.v1.offers import OfferSetView

READ_SET = as_view(OfferSetView)


def ask(document: Mapping[str, Any] | str | bytes) -> Call[OfferSetView]:
    """When and where can this run? A document (short form or full), or its YAML text."""
    if isinstance(document, Mapping):
        return Call("POST", path_of("offersets"), READ_SET, body=body_of(document))
    text = document.encode() if isinstance(document, str) else document
    return Call("POST", path_of("offersets"), READ_SET, body=text, type="application/yaml")


def offerset(id: str) -> Call[OfferSetView]:
    """The offers that were made."""
    return Call("GET", path_of("offersets", id), READ_SET)
