"""An app's manifest as old clients draw their forms from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sublet.core.app_resources import COUNT, MEMORY, NAMES
from sublet.core.manifest import Bounds, Manifest, Parameter
from sublet.wire.cybergis import SLURM

MINUTE = 60
GB = 1024**3
THEIRS = {ours: theirs for theirs, ours in SLURM.items()}


def manifest_of(manifest: Manifest, repository: str, commit: str) -> dict[str, Any]:
    """The fields that they read."""
    return {
        "name": manifest.name,
        "description": manifest.description or "none",
        "estimated_runtime": manifest.estimated_runtime or "unknown",
        "container": manifest.image.name or manifest.image.location,
        "repository": repository,
        "commit": commit,
        "supported_hpc": list(manifest.systems),
        "default_hpc": manifest.default_system or next(iter(manifest.systems), ""),
        "slurm_input_rules": {
            THEIRS[name]: rule_of(name, bounds) for name, bounds in manifest.resources.items() if name in THEIRS
        },
        "param_rules": {parameter.name: param_of(parameter) for parameter in manifest.parameters},
        "require_upload_data": any(one.required for one in manifest.data),
        "default_result_folder_downloadable_path": f"/{next(iter(manifest.results), '')}",
    }


def rule_of(name: str, bounds: Bounds) -> dict[str, Any]:
    """Bounds in their units: whole minutes, gigabytes."""
    unit = NAMES[name][0]
    size, word = {COUNT: (1, ""), MEMORY: (GB, "GB")}.get(unit, (MINUTE, "Minutes"))
    said = {
        "type": "integer",
        "min": -(-bounds.min // size),
        "max": bounds.max // size,
        "step": max(1, bounds.step // size),
        "default_value": max(1 if size > 1 else 0, bounds.default // size),
    }
    return said | ({"unit": word} if word else {})


def param_of(parameter: Parameter) -> dict[str, Any]:
    """One of the three types that they know; what else a schema says is checked by the service."""
    schema: Mapping[str, Any] = parameter.schema
    default = {"default_value": schema["default"]} if parameter.has_default else {}
    if schema.get("enum"):
        return {"type": "string_option", "options": list(schema["enum"]), "require": parameter.required, **default}
    if schema.get("type") == "integer":
        bounds = {"min": schema.get("minimum"), "max": schema.get("maximum"), "step": schema.get("multipleOf", 1)}
        return {"type": "integer", "require": parameter.required, **default, **_said(bounds)}
    return {"type": "string_input", "require": parameter.required, **default}


def _said(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
