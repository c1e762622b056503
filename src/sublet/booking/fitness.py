"""What a platform could never run, whatever is booked there."""

from __future__ import annotations

from dataclasses import replace

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Request
from sublet.platforms.port import Platform

ONCE = "{platform} starts a program on the first of its nodes alone."
ONE_NODE = "nodes: 1, or leave out each_node and reach the other nodes from the first"


def find_unfit(platform: Platform, request: Request) -> Reason | None:
    """The first reason why a platform can't run it; None if there is none."""
    reason = _find_lack_of_launcher(platform, request) or next(iter(platform.unfit(request)), None)
    return replace(reason, platform=platform.name) if reason else None


def _find_lack_of_launcher(platform: Platform, request: Request) -> Reason | None:
    """Where a program is started once, nothing may start it on each of several nodes."""
    if not request.is_for_each_node or request.compute.nodes.max == 1 or platform.starts_each_node:
        return None
    message = ONCE.format(platform=platform.name)
    return Reason("urn:not-supported", "executable.each_node", message, "true", "", ONE_NODE)
