"""The rules in a CyberGIS `manifest.json`: `slurm_input_rules` as resources, `param_rules` as parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sublet.apps.manifests.lines import Path
from sublet.apps.manifests.page import ManifestPage
from sublet.apps.manifests.sublet_yaml import check_parameter, few
from sublet.apps.model import resources as app_resources
from sublet.apps.model.manifest import Parameter, ResourceBounds
from sublet.apps.model.parameters import clamp
from sublet.booking.model.amounts import MIB, MOST_COUNT, parse_duration, quote_value
from sublet.booking.model.request import GIB
from sublet.kernel.errors import BadAmount

# CyberGIS' keys → Sublet's resources.
KEYS = {
    "num_of_node": "nodes",
    "num_of_task": "tasks",
    "cpu_per_task": "cores",
    "time": "time",
    "memory": "memory",
    "memory_per_cpu": "memory_per_core",
    "memory_per_gpu": "memory_per_gpu",
    "gpus": "gpus_in_all",
    "gpus_per_node": "gpus",
    "gpus_per_socket": "gpus",
    "gpus_per_task": "gpus_per_task",
}
PARTITION = "partition"
_RULE = ("type", "min", "max", "step", "default_value", "unit", "options", "require", "description", "title", "label")
# Units as written, in bytes and seconds: Slurm counts GB as GiB.
_UNITS: dict[str, dict[str, int]] = {
    app_resources.MEMORY: {"gb": GIB, "g": GIB, "gib": GIB, "mb": MIB, "m": MIB, "mib": MIB},
    app_resources.TIME: {
        **dict.fromkeys(("minutes", "minute", "mins", "min"), 60),
        **dict.fromkeys(("hours", "hour", "hrs", "hr"), 3600),
        **dict.fromkeys(("days", "day"), 86_400),
        **dict.fromkeys(("seconds", "second", "secs", "sec"), 1),
    },
    app_resources.COUNT: {"": 1, "none": 1},
}
_TYPES = {
    "integer": "integer",
    "int": "integer",
    "float": "number",
    "double": "number",
    "number": "number",
    "boolean": "boolean",
    "bool": "boolean",
    "string_option": "option",
    "string_input": "string",
    "string": "string",
}


def resources(page: ManifestPage) -> dict[str, ResourceBounds]:
    """Read the resources that `slurm_input_rules` limit."""
    by_name: dict[str, ResourceBounds] = {}
    under = "slurm_input_rules"
    for key, value in page.a_map((under,), page.value.get(under) or None).items():
        path = (under, key)
        if not isinstance(value, Mapping):
            page.warn(path, f"{quote_value(value)} is no rule, so that it is left out, as CyberGIS-Compute does.")
        elif key == PARTITION:
            page.warn(path, "the queue is chosen by the operator; this rule is left out.")
        elif key not in KEYS:
            page.warn(path, f"there is no {quote_value(key)} here; there are: {', '.join(KEYS)}, {PARTITION}.")
        elif bounds := _bounds(page, path, KEYS[key], value):
            if key == "gpus_per_socket":
                page.warn(path, "GPUs are counted for each node here, not for each socket.")
            by_name[KEYS[key]] = bounds
    return by_name


def _bounds(page: ManifestPage, path: Path, name: str, rule: Mapping[str, Any]) -> ResourceBounds | None:
    page.note_unknown(path, rule, _RULE, page.warn)
    keys = ("min", "max", "step", "default_value")
    clock = {key: _clock(rule.get(key)) for key in keys} if name == "time" else {}
    unit = rule.get("unit")
    factor = _factor(page, path, name, unit if unit is not None or not any(clock.values()) else "seconds")
    if factor is None:
        return None
    numbers = {
        key: clock[key] / factor if clock.get(key) else _number(page, (*path, key), rule.get(key)) for key in keys
    }
    default = numbers["default_value"]
    if default is None:
        page.warn(path, "it has no default_value, so that it is left out, as CyberGIS-Compute does.")
        return None
    least = app_resources.NAMES[name][1]
    low = max(least, round((numbers["min"] or 0) * factor))
    high = round(numbers["max"] * factor) if numbers["max"] else max(low, round(default * factor) * 2)
    step = max(1, round((numbers["step"] or 0) * factor))
    bounds = ResourceBounds(low, high, max(least, round(default * factor)), step)
    within = min(max(bounds.default, low), high)
    if low <= high and bounds.default != within:
        page.warn(
            (*path, "default_value"),
            f"the default {app_resources.text(name, bounds.default)} is not within its bounds; "
            f"{app_resources.text(name, within)} is taken, as their sliders do.",
        )
        bounds = replace(bounds, default=within)
    for why in app_resources.check_bounds(name, bounds):
        page.error(path, f"{path[-1]}: {why}.")
    return bounds


def _clock(value: Any) -> int:
    """Return the seconds of a time in Slurm's format, `00:30:00`; 0 if it isn't one."""
    if not isinstance(value, str) or ":" not in value:
        return 0
    minutes, _, seconds = value.strip().partition(":")
    if minutes.isdecimal() and seconds.isdecimal() and int(seconds) < 60:
        return int(minutes) * 60 + int(seconds)
    try:
        return round(parse_duration(value).total_seconds())
    except BadAmount:
        return 0


def _factor(page: ManifestPage, path: Path, name: str, unit: Any) -> int | None:
    units = _UNITS[app_resources.NAMES[name][0]]
    factor = units.get(str("" if unit is None else unit).lower())
    if factor is None:
        there = ", ".join(dict.fromkeys(("Minutes", "Hours", "Days") if "days" in units else ("GB", "MB")))
        reason = "it has no unit" if unit is None else f"its unit {quote_value(unit)} isn't known"
        if "" in units:
            page.warn((*path, "unit"), f"{reason}: this is a count, and is taken as one.")
            return 1
        page.warn((*path, "unit") if unit is not None else path, f"{reason}, so that it is left out; units: {there}.")
    return factor


def _number(page: ManifestPage, path: Path, value: Any) -> float | None:
    if value is None:
        return None
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or number < 0 or number > MOST_COUNT:
        page.error(path, f"{path[-1]} must be a number from 0 to {MOST_COUNT}, not {quote_value(value)}.")
        return None
    return number


def parameters(page: ManifestPage) -> tuple[Parameter, ...]:
    """Read the parameters that `param_rules` describe, dropping none."""
    read = []
    for name, rule in few(page, ("param_rules",), page.value.get("param_rules") or None):
        path = ("param_rules", name)
        if not isinstance(rule, Mapping):
            page.warn(path, f"{quote_value(rule)} is no rule, so that it is left out, as CyberGIS-Compute does.")
            continue
        if "default" in rule and "default_value" not in rule:
            page.warn((*path, "default"), "CyberGIS-Compute looks for default_value; here default counts as well.")
            rule = {("default_value" if key == "default" else key): item for key, item in rule.items()}
        page.note_unknown(path, rule, _RULE, page.warn)
        parameter = Parameter(name, _schema(page, path, rule), page.a_text((*path, "unit"), rule.get("unit")))
        if not parameter.has_default:
            page.warn(path, f"{name} has no default_value: who runs the app must give one.")
        check_parameter(page, path, parameter)
        read.append(parameter)
    return tuple(read)


def _schema(page: ManifestPage, path: Path, rule: Mapping[str, Any]) -> dict[str, Any]:
    written = str(rule.get("type") or "")
    kind = _TYPES.get(written.lower(), "string")
    if written.lower() not in _TYPES:
        there = ", ".join(_TYPES)
        page.warn(
            (*path, "type") if written else path,
            f"{quote_value(written)} is not a type; taken as text. There are: {there}.",
        )
    schema: dict[str, Any] = {key: rule[key] for key in ("title", "description") if isinstance(rule.get(key), str)}
    if isinstance(rule.get("label"), str):
        schema.setdefault("title", rule["label"])
    default = _default(page, path, rule, kind)
    if kind == "option":
        return schema | _options(page, path, rule, default)
    schema |= {"type": kind} | default
    if kind not in ("integer", "number"):
        return schema
    return _slid(page, path, schema | _read_bounds(page, path, rule, kind, default))


def _slid(page: ManifestPage, path: Path, schema: dict[str, Any]) -> dict[str, Any]:
    """Move the default into its bounds, as CyberGIS' slider does."""
    default, low, high = (schema.get(key) for key in ("default", "minimum", "maximum"))
    crossed = low is not None and high is not None and low > high
    if crossed or isinstance(default, bool) or not isinstance(default, int | float):
        return schema
    nearest = clamp(schema, default)
    if nearest == default:
        return schema
    page.warn(
        (*path, "default_value"),
        f"the default {quote_value(default)} is not what the rule allows; {quote_value(nearest)} is taken, "
        "as their sliders do.",
    )
    return schema | {"default": nearest}


def _default(page: ManifestPage, path: Path, rule: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the default, if there is one; 0, "" and false count."""
    value = rule.get("default_value")
    if value is None:
        return {}
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and kind in ("integer", "number", "boolean"):
        value = _as(kind, value)
    if kind == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    return {"default": value}


def _as(kind: str, text: str) -> Any:
    """Convert a number or boolean that was written as text."""
    if kind == "boolean":
        return {"true": True, "false": False}.get(text.lower(), text)
    try:
        return int(text) if kind == "integer" else float(text)
    except ValueError:
        return text


def _options(page: ManifestPage, path: Path, rule: Mapping[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    options = rule.get("options")
    if options is not None and not isinstance(options, list):
        page.error((*path, "options"), "options must be a list.")
        options = None
    choices = [] if options is None else list(options)
    if default and default["default"] not in choices:
        if choices:
            page.warn(
                (*path, "default_value"), f"{quote_value(default['default'])} is not in options; it is added to them."
            )
        choices.append(default["default"])
    if not choices:
        page.warn(path, "a string_option without options: any text is taken.")
        return {"type": "string"}
    return {"enum": choices} | default


def _read_bounds(
    page: ManifestPage, path: Path, rule: Mapping[str, Any], kind: str, default: dict[str, Any]
) -> dict[str, Any]:
    bounds: dict[str, Any] = {}
    for key, keyword in (("min", "minimum"), ("max", "maximum"), ("step", "step")):
        value = rule.get(key)
        if isinstance(value, str):
            value = _as("number" if kind == "number" or "." in value else "integer", value)
        if value is None:
            continue
        if not isinstance(value, int | float) or isinstance(value, bool):
            page.error((*path, key), f"{key} must be a number, not {quote_value(value)}.")
        else:
            bounds[keyword] = value
    step, low, start = bounds.get("step"), bounds.get("minimum", 0), default.get("default", 0)
    if kind != "integer" or not isinstance(step, int) or step < 2:
        return bounds
    if isinstance(low, int) and isinstance(start, int) and low % step == start % step == 0:
        bounds["multipleOf"] = step
    return bounds
