"""Form fields for the options of a cluster's scheduler, made from the table of all options."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sublet.booking.model.scheduler import SchedulerOptions, Spec, scheduler_specs, type_option
from sublet.web.fields import TICKED, Field

CONTROLS = {str: "text", int: "number", bool: "check", tuple: "lines"}


def make_scheduler_fields(
    choosable: Collection[Spec], values: Mapping[str, str], prefix: str = ""
) -> tuple[Field, ...]:
    """Return a field for each option that can be chosen, and for each that has a value already."""
    return tuple(
        _make_field(spec, f"{prefix}{name}", values.get(f"{prefix}{name}", ""))
        for name, spec in scheduler_specs().items()
        if spec in choosable or values.get(f"{prefix}{name}")
    )


def _make_field(spec: Spec, key: str, value: str) -> Field:
    control = CONTROLS[spec.kind]
    attributes = {"min": "0", "max": str(spec.most)} if control == "number" else {}
    if control == "number" and value and not value.isdecimal():
        control, attributes = "text", {}  # a number field would not show what was typed
    hint = f"{spec.metavar}, one a line, as sbatch has them." if control == "lines" else spec.help
    return Field(key, key.replace(".", "-"), spec.label, control, value, hint, attributes=attributes)


def read_scheduler_fields(values: Mapping[str, str], prefix: str = "") -> dict[str, Any]:
    """Return the options that were filled in, as a request's document has them."""
    typed = {name: values.get(f"{prefix}{name}", "").strip() for name in scheduler_specs()}
    return {name: _read_field(scheduler_specs()[name], text) for name, text in typed.items() if text}


def _read_field(spec: Spec, text: str) -> Any:
    if spec.kind is bool:
        return text == TICKED
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return type_option(spec, lines if spec.kind is tuple else text)


def fill_scheduler_fields(asked: SchedulerOptions, prefix: str = "") -> dict[str, str]:
    """Return the form's values for these options."""
    return {f"{prefix}{name}": _show_value(value) for name, value in asked.list_asked().items()}


def _show_value(value: Any) -> str:
    if value is True:
        return TICKED
    return "\n".join(value) if isinstance(value, tuple) else str(value)
