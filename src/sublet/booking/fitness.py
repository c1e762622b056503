"""Requests that a platform can never run, whatever is booked there."""

from __future__ import annotations

from dataclasses import replace

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Request
from sublet.platforms.port import Platform

ONCE = "{platform} starts a program only on the first of its nodes."
ONE_NODE = "nodes: 1, or leave out each_node and reach the other nodes from the first"


def find_unfit(platform: Platform, request: Request) -> Reason | None:
    """Return the first reason why a platform can never run the request, or None."""
    reason = _find_lack_of_launcher(platform, request) or next(iter(platform.unfit(request)), None)
    return replace(reason, platform=platform.name) if reason else None


def _find_lack_of_launcher(platform: Platform, request: Request) -> Reason | None:
    """Return a reason if the request starts its program on each of several nodes, and the platform can't do that."""
    if not request.is_for_each_node or request.compute.nodes.max == 1 or platform.starts_each_node:
        return None
    message = ONCE.format(platform=platform.name)
    return Reason("urn:not-supported", "executable.each_node", message, "true", "", ONE_NODE)
