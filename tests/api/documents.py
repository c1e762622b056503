"""Requests of our own, in the shapes that IVOA clients send."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

IVOA = "https://www.purl.org/ivoa.net/Calycopis-openapi/schema/v1.0/kinds"
Document = dict[str, Any]

DIGEST = "sha256:" + "ab" * 32
CONTAINER: Document = {
    "kind": f"{IVOA}/executable/docker-container.yaml",
    "meta": {"name": "tool"},
    "image": {"locations": ["registry.example.org/tool:1"], "digest": DIGEST},
    "command": ["--fast"],
}
SIMPLE = f"{IVOA}/compute/simple-compute-resource.yaml"


def monday() -> str:
    """Nine o'clock on a day next month."""
    return (datetime.now(UTC) + timedelta(days=30)).strftime("%Y-%m-%dT09:00:00Z")


def minimal() -> Document:
    """The least that can be asked."""
    return {"executable": CONTAINER}


def full() -> Document:
    """Every block that a request has."""
    return {
        "executable": CONTAINER
        | {"entrypoint": "/run.sh", "environment": {"MODE": "fast"}, "privileged": False}
        | {"network": {"ports": [{"access": True, "protocol": "HTTP", "path": "/lab", "internal": {"port": 8888}}]}},
        "compute": {
            "kind": SIMPLE,
            "meta": {"name": "nodes"},
            "cores": {"min": 2, "max": 4},
            "memory": {"min": 4, "max": 8},
            "volumes": [
                {
                    "kind": f"{IVOA}/volume/simple-volume-mount.yaml",
                    "meta": {"name": "in"},
                    "path": "/input",
                    "mode": "READONLY",
                    "resource": "cube",
                }
            ],
        },
        "storage": [
            {
                "kind": f"{IVOA}/storage/simple-storage-resource.yaml",
                "meta": {"name": "scratch"},
                "size": {"min": 10, "max": 20},
            }
        ],
        "data": [
            {
                "kind": f"{IVOA}/data/simple-data-resource.yaml",
                "meta": {"name": "cube"},
                "storage": "scratch",
                "location": "https://data.example.org/cube.fits",
                "schedule": {"preparing": {"duration": "PT10M"}},
            }
        ],
        "schedule": {"requested": {"start": f"{monday()}/PT3H", "duration": "PT4H"}},
        "costs": [
            {
                "kind": f"{IVOA}/costs/simple-minmax-float-cost.yaml",
                "type": "urn:ivoa:calycopis:cost:monetary",
                "max": 1.0,
            }
        ],
        "metrics": [
            {
                "kind": f"{IVOA}/metrics/simple-minmax-float-metric.yaml",
                "type": "urn:ivoa:calycopis:metric:compute-performance",
                "min": 150.0,
            }
        ],
    }


def notebook() -> Document:
    """A notebook, in a window."""
    return {
        "executable": {
            "kind": f"{IVOA}/executable/jupyter-notebook.yaml",
            "meta": {"name": "nb"},
            "location": "https://example.org/a.ipynb",
        },
        "schedule": {"requested": {"start": f"{monday()}/PT3H", "duration": "PT2H"}},
    }


def lasting(duration: str) -> Document:
    """A container for so long."""
    return minimal() | {"schedule": {"requested": {"start": f"{monday()}/P14D", "duration": duration}}}


def older() -> Document:
    """As the schema was written before: `type`, versions in URIs, resources in a block."""
    base = "https://www.purl.org/ivoa.net/EB/schema/types"
    return {
        "executable": {"type": f"{base}/executable/docker-container-1.0"}
        | {key: value for key, value in CONTAINER.items() if key not in {"kind", "meta"}},
        "resources": {
            "compute": [
                {"type": f"{base}/resources/compute/simple-compute-resource-1.0", "cores": {"requested": {"min": 2}}}
            ]
        },
    }


def privileged() -> Document:
    """What nobody gets."""
    return {"executable": CONTAINER | {"privileged": True}}


def unknown_kind() -> Document:
    """An executable that nobody has heard of."""
    return {"executable": {"kind": "https://example.org/kinds/executable/brand-new-0.1.yaml", "meta": {"name": "n"}}}


def no_executable() -> Document:
    """Something to run on, and nothing to run."""
    return {"compute": {"kind": SIMPLE, "cores": {"min": 1, "max": 1}}}


def too_big() -> Document:
    """More cores than there are."""
    return minimal() | {"compute": {"kind": SIMPLE, "meta": {"name": "big"}, "cores": {"min": 64, "max": 128}}}


YES = {"minimal": minimal, "full": full, "notebook": notebook, "older": older}
YES |= {"three hours": lambda: lasting("PT3H"), "eight days": lambda: lasting("P8D")}
NO = {
    "privileged": (privileged, "urn:not-supported"),
    "unknown kind": (unknown_kind, "urn:unknown-kind"),
    "no executable": (no_executable, "urn:executable-required"),
    "too big": (too_big, "urn:resource-limit"),
}


def phase_update(phase: str, path: str = "phase") -> Document:
    """A move to a phase."""
    return {"kind": "uri:enum-value-update", "path": path, "value": phase}
