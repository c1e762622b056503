"""The form that runs an app: built from its manifest, read into a request, with reasons shown beside its fields."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sublet.apps.model.app import Version
from sublet.apps.model.manifest import Input, Manifest, Parameter, ResourceBounds
from sublet.apps.model.parameters import read
from sublet.apps.model.resources import COUNT, DEFAULT_TIME, NAMES, parse, text
from sublet.apps.pages.fields import field_of, show_value
from sublet.apps.run_requests import AppWish
from sublet.booking.model.amounts import duration_text
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import GIB, Request
from sublet.booking.model.scheduler import SCHEDULER_NAMES, Spec, scheduler_specs
from sublet.booking.pages.form import FormError, Values, lines_of
from sublet.booking.pages.scheduler import fill_scheduler_fields, make_scheduler_fields, read_scheduler_fields
from sublet.kernel.errors import BadAmount
from sublet.web.fields import Field

PARAMETER, RESOURCE, DATA, SCHEDULER = "parameters.", "resources.", "data.", "scheduler."
VERSION, WHERE, NAME, MORE, SEND = "version", "hpc", "name", "more", "send"
LABELS = {
    "nodes": "Nodes",
    "tasks": "Tasks",
    "cores": "Cores for each task",
    "memory": "Memory on each node",
    "memory_per_core": "Memory for each core",
    "memory_per_gpu": "Memory for each GPU",
    "gpus": "GPUs on each node",
    "gpus_per_task": "GPUs for each task",
    "gpus_in_all": "GPUs in all",
    "time": "For how long",
}
MEMORY = ("memory", "memory_per_core", "memory_per_gpu")
# A request's field → the manifest's resources that it can come from, likeliest first.
SOURCES = {
    "nodes": ("nodes",),
    "cores": ("cores", "tasks"),
    "memory": MEMORY,
    "gpus": ("gpus", "gpus_per_task", "gpus_in_all"),
    "tasks": ("tasks",),
    "time": ("time",),
    "duration": ("time",),
}
NTH = re.compile(r"data\[(.*?)\]")


@dataclass(frozen=True, slots=True)
class Form:
    """Everything that can be chosen for a run of one version."""

    parameters: tuple[Field, ...]
    resources: tuple[Field, ...]
    fixed: tuple[str, ...]  # what can't be chosen, in words
    data: tuple[Field, ...]
    where: Field
    name: Field
    more: Field | None  # other parameters, if the app takes any
    send: Field  # where results go
    options: tuple[Field, ...]  # of a cluster's scheduler
    ids: Mapping[str, str] = field(default_factory=dict)  # of each field, by the name under which it is sent

    @property
    def count(self) -> int:
        """The number of fields."""
        return len(self.ids)


def form_of(
    manifest: Manifest,
    places: Sequence[str],
    values: Values | None = None,
    choosable: Collection[Spec] = tuple(scheduler_specs().values()),
) -> Form:
    """Build the form for a manifest, the available places and scheduler options, with defaults or the given values."""
    given = values if values is not None else first_values(manifest, places)
    parameters = tuple(
        field_of(one, f"{PARAMETER}{one.name}", f"parameter-{number}", given.get(f"{PARAMETER}{one.name}", ""))
        for number, one in enumerate(manifest.parameters)
    )
    bounds = bounds_of(manifest)
    free = {name: each for name, each in bounds.items() if each is None or each.min < each.max}
    resources = tuple(_resource(name, each, given.get(f"{RESOURCE}{name}", "")) for name, each in free.items())
    fixed = tuple(
        f"{LABELS[name]}: {text(name, each.min)}" for name, each in bounds.items() if each and name not in free
    )
    data = tuple(
        _input(one, f"data-{number}", given.get(f"{DATA}{one.name}", ""))
        for number, one in enumerate(inputs_of(manifest))
    )
    anywhere = () if len(places) == 1 else (("", "Anywhere that is open to you"),)
    choices = (*anywhere, *((name, name) for name in places))
    where = Field(WHERE, "where", "Where", "choice", given.get(WHERE, ""), choices=choices)
    name = Field(NAME, "name", "Name", "text", given.get(NAME, ""), "How you will find it again")
    hint = "NAME=VALUE, one a line: the app takes any."
    more = (
        Field(MORE, "more", "Other parameters", "lines", given.get(MORE, ""), hint) if manifest.any_parameters else None
    )
    hint = "A folder of yours, as s3://bucket/run1/ or davs://server/run1/; empty: they stay here to be downloaded."
    send = Field(SEND, "send", "Send results to", "text", given.get(SEND, ""), hint, attributes={"inputmode": "url"})
    options = make_scheduler_fields(choosable, given, SCHEDULER)
    everything = (*parameters, *resources, *data, where, name, *((more,) if more else ()), send, *options)
    ids = {each.key: each.id for each in everything}
    return Form(parameters, resources, fixed, data, where, name, more, send, options, ids)


def bounds_of(manifest: Manifest) -> dict[str, ResourceBounds | None]:
    """Return the resources that can be requested, in their usual order; None: no bounds."""
    given = manifest.resources
    free = {"time"} | (set() if given.keys() & set(MEMORY) else {"memory"})
    return {name: given.get(name) for name in NAMES if name in given or name in free}


def inputs_of(manifest: Manifest) -> tuple[Input, ...]:
    """Return the app's inputs; for formats with one folder that state none, that folder."""
    folder = (Input("data", description="the folder that the app reads"),) if manifest.one_folder else ()
    return manifest.data or folder


def _resource(name: str, bounds: ResourceBounds | None, value: str) -> Field:
    counted = NAMES[name][0] == COUNT
    attributes = {}
    hint = "With its unit: 90m, 2h" if name == "time" else "With its unit: 512MiB, 8GiB"
    if bounds:
        hint = f"{text(name, bounds.min)} to {text(name, bounds.max)}"
    if bounds and counted:
        attributes = {"min": str(bounds.min), "max": str(bounds.max)}
        if not (bounds.default - bounds.min) % bounds.step:
            attributes["step"] = str(bounds.step)
    control = "number" if counted and (value.isdecimal() or not value) else "text"
    return Field(f"{RESOURCE}{name}", f"resource-{name}", LABELS[name], control, value, hint, attributes=attributes)


def _input(item: Input, id: str, value: str) -> Field:
    attributes = {"inputmode": "url", "list": "uploads-known"} | ({"required": ""} if item.required else {})
    described = item.description[:1].upper() + item.description[1:]
    asked = "An https: address, or upload:NAME/" + ("" if item.required else ", or empty")
    hint = f"{described.rstrip('.')}. {asked}" if described else asked
    return Field(f"{DATA}{item.name}", id, item.name, "text", value, hint, attributes=attributes)


def first_values(manifest: Manifest, places: Sequence[str]) -> Values:
    """Return the initial values of the form."""
    values = {
        f"{PARAMETER}{parameter.name}": show_value(parameter, parameter.schema["default"])
        for parameter in manifest.parameters
        if parameter.has_default
    }
    usual = {"time": round(DEFAULT_TIME.total_seconds()), "memory": GIB}
    for name, bounds in bounds_of(manifest).items():
        amount = bounds.default if bounds else usual[name]
        values[f"{RESOURCE}{name}"] = duration_text(timedelta(seconds=amount)) if name == "time" else text(name, amount)
    return values | {WHERE: manifest.default_system if manifest.default_system in places else ""}


def values_of(manifest: Manifest, places: Sequence[str], request: Request) -> Values:
    """Return the values that repeat an earlier request."""
    fields = request.executable.fields if request.executable else {}
    values = first_values(manifest, places)
    given = fields.get("parameters") or {}
    for each in manifest.parameters:
        if each.name in given:
            values[f"{PARAMETER}{each.name}"] = show_value(each, given[each.name])
    others = [f"{name}={show_value(Parameter(name), value)}" for name, value in given.items()]
    values[MORE] = "\n".join(line for line in others if manifest.parameter(line.partition("=")[0]) is None)
    asked = {"time": duration_text(request.duration), "tasks": fields.get("tasks")} | (fields.get("resources") or {})
    values |= {f"{RESOURCE}{name}": str(amount) for name, amount in asked.items() if amount is not None}
    values |= {f"{DATA}{each.name}": each.location for each in request.data}
    values[SEND] = request.outputs[0].to if request.outputs else ""
    name = request.executable.name if request.executable else ""
    values |= fill_scheduler_fields(request.scheduler, SCHEDULER)
    return values | {WHERE: request.platform, NAME: "" if name == manifest.name else name}


def read_typed(manifest: Manifest, form: Mapping[str, str]) -> Values:
    """Return the form's fields as typed; unticked boxes aren't sent."""
    keys = form_of(manifest, ()).ids
    return {key: form[key].replace("\r\n", "\n") for key in keys if key in form}


def check(manifest: Manifest, values: Values) -> dict[str, FormError]:
    """Return the errors of fields that can't be parsed."""
    wrong: dict[str, FormError] = {}
    for name, typed in _amounts(manifest, values).items():
        try:
            parse(name, typed)
        except BadAmount as error:
            wrong[f"{RESOURCE}{name}"] = FormError(error.message, error.advice)
    for line in lines_of(values.get(MORE, "")):
        if not line.partition("=")[0].strip() or "=" not in line:
            wrong[MORE] = FormError(f"{line[:80]} is not a name and a value.", "Write NAME=VALUE.")
    return wrong


def wish_of(version: Version, manifest: Manifest, values: Values) -> AppWish:
    """Convert the values to a request; empty fields are left out, unless empty is a value."""
    chosen: dict[str, Any] = {}
    for each in manifest.parameters:
        typed = _value(each, values.get(f"{PARAMETER}{each.name}"))
        chosen |= {} if typed is LEFT_OUT else {each.name: typed}
    words = dict(line.split("=", 1) for line in lines_of(values.get(MORE, "")))
    data = {each.name: typed for each in inputs_of(manifest) if (typed := values.get(f"{DATA}{each.name}", "").strip())}
    return AppWish(
        app=version.app,
        version=str(version.number),
        hpc=values.get(WHERE, ""),
        name=values.get(NAME, "").strip(),
        set=chosen,
        words={name.strip(): word for name, word in words.items()},
        data=data,
        outputs=[{"path": "*", "to": f"{to.rstrip('/')}/"}] if (to := values.get(SEND, "").strip()) else [],
        resources=_amounts(manifest, values),
        scheduler=read_scheduler_fields(values, SCHEDULER),
    )


LEFT_OUT = object()


def _value(parameter: Parameter, typed: str | None) -> Any:
    schema = parameter.schema
    if "enum" in schema:
        return read(None, typed) if typed else LEFT_OUT
    if schema.get("type") == "boolean":
        return read(None, typed) if typed else False
    if typed is None or (not typed.strip() and not (schema.get("type") == "string" and parameter.has_default)):
        return LEFT_OUT
    return read(parameter, typed if schema.get("type") == "string" else typed.strip())


def _amounts(manifest: Manifest, values: Values) -> dict[str, str | int]:
    typed = {name: values.get(f"{RESOURCE}{name}", "").strip() for name in bounds_of(manifest)}
    return {name: _amount(name, text) for name, text in typed.items() if text}


def _amount(name: str, text: str) -> str | int:
    whole = NAMES[name][0] == COUNT and text.isascii() and text.isdigit() and len(text) < 10
    return int(text) if whole else text


def beside(manifest: Manifest, values: Values, reasons: Iterable[Reason]) -> tuple[dict[str, FormError], list[Reason]]:
    """Assign each reason to its field, one per field; return also those that belong to none."""
    wrong: dict[str, FormError] = {}
    others: list[Reason] = []
    for reason in reasons:
        key = key_of(manifest, values, reason.field)
        if not key or key in wrong:
            others.append(reason)
        else:
            wrong[key] = FormError(reason.message, f"Possible: {reason.nearest}." if reason.nearest else "")
    return wrong, others


def key_of(manifest: Manifest, values: Values, path: str) -> str:
    """Return the form's field that a field of the request came from; empty if there is none."""
    keys = form_of(manifest, ()).ids
    plain = path.removeprefix("executable.")
    if plain.startswith(PARAMETER):
        return plain if plain in keys else MORE if MORE in keys else ""
    if plain in ("platform", "system", "account"):
        return WHERE if values.get(WHERE) else ""
    if plain.startswith("outputs"):
        return SEND
    if plain.startswith("data"):
        return _data_key(manifest, values, plain)
    if (option := plain.partition(".")[0]) in SCHEDULER_NAMES:
        return f"{SCHEDULER}{option}"
    for part in re.split(r"[.\[]", plain):
        for name in (part, *SOURCES.get(part, ())):
            if f"{RESOURCE}{name}" in keys:
                return f"{RESOURCE}{name}"
    return plain if plain == NAME else ""


def _data_key(manifest: Manifest, values: Values, path: str) -> str:
    names = [each.name for each in inputs_of(manifest)]
    given = [name for name in names if values.get(f"{DATA}{name}", "").strip()]
    missing = [each.name for each in manifest.data if each.required and each.name not in given]
    match = NTH.match(path)
    if match is None:
        name = next(iter(missing), "")
    elif match[1].isdecimal() and int(match[1]) < len(given):
        name = given[int(match[1])]
    else:
        name = match[1]
    return f"{DATA}{name}" if name in names else ""
