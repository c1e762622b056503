"""The service's Prometheus metrics, in registries of their own."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

registry = CollectorRegistry()
of_platforms = CollectorRegistry()  # metrics with a platform's name

offersets = Counter("sublet_offersets", "Offer sets made, by answer.", ["result"], registry=registry)
moves = Counter("sublet_session_moves", "Sessions that entered a phase.", ["phase"], registry=registry)
ends = Counter("sublet_session_ends", "Sessions that ended, by reason.", ["kind"], registry=registry)
sessions = Gauge("sublet_sessions", "Sessions on record, by phase.", ["phase"], registry=registry)
turn = Histogram("sublet_turn_seconds", "Seconds that a turn of the loop took.", registry=registry)
turn_failures = Counter("sublet_turn_failures", "Turns of the loop that failed.", registry=registry)
platform_errors = Counter(
    "sublet_platform_errors", "Calls that a platform failed.", ["platform", "code"], registry=of_platforms
)


def page(whole: bool) -> bytes:
    """Return the metrics in Prometheus' text format; those that name platforms only if `whole`."""
    return generate_latest(registry) + (generate_latest(of_platforms) if whole else b"")
