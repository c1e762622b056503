"""An app's manifest in the form from which old clients draw their forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sublet.apps.model.manifest import Manifest, Parameter, ResourceBounds
from sublet.apps.model.resources import COUNT, MEMORY, NAMES, TIME
from sublet.doors.cybergis.wire import SLURM
from sublet.kernel.value_names import value_text

MIB, GIB = 1024**2, 1024**3
THEIRS = {ours: theirs for theirs, ours in reversed(SLURM.items())}
# The units that their forms know, largest first, in bytes and seconds.
UNITS = {MEMORY: {"GB": GIB, "MB": MIB}, TIME: {"Hours": 3600, "Minutes": 60}, COUNT: {"None": 1}}


def manifest_of(manifest: Manifest, repository: str, commit: str, places: Sequence[str]) -> dict[str, Any]:
    """Return the fields that old clients read; if one is missing, they draw no form."""
    there = list_supported(manifest, places)
    return {
        "name": manifest.title or manifest.name,
        "description": manifest.description or "none",
        "estimated_runtime": manifest.estimated_runtime or "unknown",
        "container": manifest.image.name or manifest.image.location,
        "repository": repository,
        "commit": commit,
        "supported_hpc": there,
        "default_hpc": manifest.default_system if manifest.default_system in there else next(iter(there), ""),
        "slurm_input_rules": {
            THEIRS[name]: rule_of(name, bounds) for name, bounds in manifest.resources.items() if name in THEIRS
        },
        "param_rules": {parameter.name: param_of(parameter) for parameter in manifest.parameters},
        "require_upload_data": any(item.required for item in manifest.data),
        "default_result_folder_downloadable_path": f"/{next(iter(manifest.results), '')}",
    }


def list_supported(manifest: Manifest, places: Sequence[str]) -> list[str]:
    """Return the platforms on which the app is known to run; old clients look up each of them."""
    return [place for place in places if not manifest.systems or place in manifest.systems]


def rule_of(name: str, bounds: ResourceBounds) -> dict[str, Any]:
    """Return bounds for their sliders, in the largest unit in which all of them are whole."""
    units = UNITS[NAMES[name][0]]
    numbers = (bounds.max, bounds.default, bounds.min) if bounds.min > NAMES[name][1] else (bounds.max, bounds.default)
    unit, size = next(
        ((unit, size) for unit, size in units.items() if not any(n % size for n in numbers)), [*units.items()][-1]
    )
    low = -(-bounds.min // size)
    high = max(low, bounds.max // size)
    return {
        "type": "integer",
        "min": low,
        "max": high,
        "step": max(1, bounds.step // size) if not (low * size - bounds.min) % bounds.step else 1,
        "default_value": min(max(bounds.default // size, low), high),
        "unit": unit,
    }


def param_of(parameter: Parameter) -> dict[str, Any]:
    """Return a parameter as one of the three types that they know; the service checks the rest of its schema."""
    schema: Mapping[str, Any] = parameter.schema
    required = {"require": parameter.required}
    options = [True, False] if schema.get("type") == "boolean" else list(schema.get("enum") or ())
    if options:
        return {
            "type": "string_option",
            "options": options,
            "default_value": schema.get("default", options[0]),
            **required,
        }
    low, high = schema.get("minimum"), schema.get("maximum")
    if schema.get("type") == "integer" and isinstance(low, int) and isinstance(high, int):
        start = schema.get("default", low)
        bounds = {"min": low, "max": high, "step": schema.get("multipleOf") or schema.get("step") or 1}
        return {"type": "integer", "default_value": start, **bounds, **required}
    return {"type": "string_input", "default_value": value_text(schema.get("default", "")), **required}
