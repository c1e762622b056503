"""The URIs that name kinds on the wire, and the short names that Sublet uses internally."""

from __future__ import annotations

import re

IVOA = "https://www.purl.org/ivoa.net/Calycopis-openapi/schema/v1.0/kinds/"
SUBLET = "urn:sublet:kind:"
NODE_COMPUTE = f"{SUBLET}compute:node-compute-resource"  # has nodes, GPUs and several windows, which IVOA's kind lacks

SIMPLE_COMPUTE = f"{IVOA}compute/simple-compute-resource.yaml"
SIMPLE_STORAGE = f"{IVOA}storage/simple-storage-resource.yaml"
SIMPLE_DATA = f"{IVOA}data/simple-data-resource.yaml"
SIMPLE_VOLUME = f"{IVOA}volume/simple-volume-mount.yaml"
SIMPLE_COST = f"{IVOA}costs/simple-minmax-float-cost.yaml"

MONETARY = "urn:ivoa:calycopis:cost:monetary"

KINDS: dict[str, tuple[str, ...]] = {
    "executable": ("docker-container", "singularity-container", "jupyter-notebook"),
    "compute": ("simple-compute-resource",),
    "storage": ("simple-storage-resource",),
    "volume": ("simple-volume-mount",),
    "data": (
        "simple-data-resource",
        "S3-data-resource",
        "rucio-data-resource",
        "ivoa-data-resource",
        "skao-data-resource",
    ),
    "costs": ("simple-minmax-float-cost",),
    "metrics": ("simple-minmax-float-metric",),
    "session": ("simple-execution-session", "scheduled-execution-session"),
    "offerset": ("execution-offerset",),
}

_VERSION = re.compile(r"-[0-9]+(\.[0-9]+)+$")
_SHORT = {f"{IVOA}{family}/{name}.yaml": name for family, names in KINDS.items() for name in names}
_FULL = {(family, name): f"{IVOA}{family}/{name}.yaml" for family, names in KINDS.items() for name in names}


def short_name(uri: str) -> str:
    """Return the last part of a kind's URI without its version; it is the same in every schema."""
    known = _SHORT.get(uri)
    if known is not None:
        return known
    last = re.split(r"[/:#]", uri.rstrip("/"))[-1]
    return _VERSION.sub("", last.removesuffix(".yaml"))


def uri_of(family: str, name: str) -> str:
    """Return the URI of a kind by its short name: IVOA's if there is one, else Sublet's own."""
    return _FULL.get((family, name)) or f"{SUBLET}{family}:{name}"
