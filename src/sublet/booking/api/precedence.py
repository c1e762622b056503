"""Query parameters that say whether the same person's earlier offers give way, and these to later ones."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Query
from starlette.requests import Request

from sublet.booking.model.giving_way import Precedence
from sublet.kernel.errors import BadRequest

KEEP = "Leave your earlier offers as they are; else those give way that leave no room for these."
FIRM = "Later requests leave these offers as they are: for those who accept one at once."
INSTEAD = "An earlier offer set of yours that is given back if there are offers now."
WORDS = {"true": True, "1": True, "false": False, "0": False}
BROKER_PARAMETERS: list[dict[str, Any]] = [
    {
        "name": "keep_offers",
        "in": "query",
        "required": False,
        "description": "Whether offers stand until they expire, as the standard has it. If false, earlier offers of "
        "the same person give way where they leave no room for these, and these to later ones.",
        "schema": {"type": "boolean", "default": True},
    }
]


async def read_precedence(  # async: FastAPI runs other functions in a thread
    keep_offers: Annotated[bool, Query(description=KEEP)] = False,
    firm: Annotated[bool, Query(description=FIRM)] = False,
    instead_of: Annotated[str, Query(description=INSTEAD)] = "",
) -> Precedence:
    """Read the precedence of a request under /v1."""
    return Precedence(keep_offers, firm, instead_of)


Said = Annotated[Precedence, Depends(read_precedence)]


def read_broker_precedence(request: Request) -> Precedence:
    """Read the precedence of a request at IVOA's addresses, where by default offers stand until they expire."""
    word = request.query_params.get("keep_offers", "true")
    if word not in WORDS:
        raise BadRequest(detail=f"keep_offers can't be {word[:40]!r}.", hint="Say true or false.")
    return Precedence(keep_offers=WORDS[word], firm=WORDS[word])
