"""The form of the ask page: converts typed values to a request in the short form, and back."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sublet.booking.model.amounts import duration_text, memory_text, parse_counts, parse_duration, parse_memories
from sublet.booking.model.places import PlaceWish
from sublet.booking.model.request import Data, Executable, Range, Recurring, Request, Window
from sublet.booking.model.scheduler import SCHEDULER_NAMES
from sublet.booking.model.steps import read_step, write_step
from sublet.booking.model.windows import DAYS, parse_start
from sublet.booking.pages.scheduler import fill_scheduler_fields, read_scheduler_fields
from sublet.kernel.data_urls import is_data_url
from sublet.kernel.errors import BadAmount, BadRequest, SubletError
from sublet.kernel.value_names import directory_name, last_name
from sublet.web.words import machine

Values = dict[str, str]

EMPTY: Values = {
    "what": "command",
    "script": "",
    "image": "",
    "image_run": "",
    "each_node": "",
    "steps": "",
    "steps_how": "",
    "steps_image": "",
    "notebook": "",
    "requirements": "",
    "interface": "lab",
    "idle": "",
    "name": "",
    "cores": "1",
    "memory": "1GiB",
    "gpus": "",
    "nodes": "",
    "time": "1h",
    "start": "",
    "data": "",
    "places": "",
    "platform": "",
    **dict.fromkeys(SCHEDULER_NAMES, ""),
}
WHAT = {
    "command": "script",
    "steps": "steps",
    "image": "image",
    "notebook": "notebook",
    "interactive": "interface",
}
STEPS_HOW = ("keep_going", "together")  # else the steps run one after another until one fails
SAID_OF_INTERACTIVE = {"interface", "idle", "standard_image", "recipe"}  # the last two are set by the service itself
NEEDED = {
    "script": ("Say what to run.", "Write a command as you would in a terminal, or a whole script."),
    "steps": ("Say what the steps run.", "Write a command a line, with name= before it if you like."),
    "image": ("Name the image.", "Write it as docker.io/library/python:3.12."),
    "notebook": ("Say where the notebook is.", "Write an https: or file: address that ends in .ipynb."),
}
# The parser of each amount; its complaint is shown beside the field.
READERS: dict[str, Callable[[str], object]] = {
    "cores": lambda text: parse_counts(text, "a number of cores"),
    "nodes": lambda text: parse_counts(text, "a number of nodes"),
    "gpus": lambda text: parse_counts(text, "a number of GPUs", 0),
    "memory": parse_memories,
    "time": parse_duration,
    "idle": parse_duration,
}
# A part of a request field's path → the form's field; the first part that is listed counts.
FIELDS = {
    "run": "script",
    "argv": "script",
    "script": "script",
    "steps": "steps",
    "image": "image",
    "command": "image_run",
    "each_node": "each_node",
    "location": "notebook",
    "notebook": "notebook",
    "requirements": "requirements",
    "interface": "interface",
    "interactive": "interface",
    "idle": "idle",
    "name": "name",
    "cores": "cores",
    "memory": "memory",
    "gpus": "gpus",
    "nodes": "nodes",
    "time": "time",
    "duration": "time",
    "start": "start",
    "starts": "start",
    "data": "data",
    "places": "places",
    "platform": "platform",
    **{name: name for name in SCHEDULER_NAMES},
}


@dataclass(frozen=True, slots=True)
class FormError:
    """What is wrong with a field, and how to fix it."""

    message: str
    hint: str


def read_typed(form: Mapping[str, str]) -> Values:
    """Return the form's fields as they were typed, and nothing else."""
    return {name: form.get(name, otherwise).replace("\r\n", "\n") for name, otherwise in EMPTY.items()}


def check(values: Values, now: datetime) -> dict[str, FormError]:
    """Return what is wrong, field by field."""
    wrong: dict[str, FormError] = {}
    needed = WHAT.get(values["what"], "script")
    if not values[needed].strip():
        wrong[needed] = FormError(*NEEDED[needed])
    readers = READERS | {"start": lambda text: parse_start(text, now)}
    for name, read in readers.items():
        text = values[name].strip()
        if text and (complaint := _complaint(read, text)):
            wrong[name] = complaint
    return wrong


def _complaint(read: Callable[[str], object], text: str) -> FormError | None:
    try:
        read(text)
    except BadAmount as error:
        return FormError(error.message, error.advice)
    return None


def short_of(values: Values) -> dict[str, Any]:
    """Return the request in the short form; empty fields are left out."""
    what = values["what"]
    short: dict[str, Any] = {}
    if values["name"].strip():
        short["name"] = values["name"].strip()
    if what == "image":
        short |= _write_image(values)
    elif what == "steps":
        short |= _write_steps(values)
    elif what == "notebook":
        short["notebook"] = values["notebook"].strip()
    elif what == "interactive":
        short["interactive"] = values["interface"].strip()
        short |= {"idle": values["idle"].strip()} if values["idle"].strip() else {}
    else:
        short["script"] = values["script"]
    if what in ("notebook", "interactive") and values["requirements"].split():
        short["requirements"] = lines_of(values["requirements"])
    if what in ("command", "image") and values["each_node"] == "true":
        short["each_node"] = True
    for name in ("cores", "memory", "gpus", "nodes", "time", "start", "platform"):
        if text := values[name].strip():
            short[name] = int(text) if text.isdecimal() and len(text) < 10 and name != "platform" else text
    lists = {
        "data": [_data(line) for line in lines_of(values["data"])],
        "places": values["places"].replace(",", " ").split(),
    }
    return short | {name: items for name, items in lists.items() if items} | read_scheduler_fields(values)


def _write_image(values: Values) -> dict[str, Any]:
    """Return the image, and the command to run in it if one is given."""
    run = values["image_run"].strip()
    return {"image": values["image"].strip(), **({"run": run} if run else {})}


def _write_steps(values: Values) -> dict[str, Any]:
    """Return the steps, how they run, and the image that they run in if one is named."""
    how = {values["steps_how"]: True} if values["steps_how"] in STEPS_HOW else {}
    image = {"image": values["steps_image"].strip()} if values["steps_image"].strip() else {}
    return {"steps": {"run": [read_step(line) for line in lines_of(values["steps"])], **how}, **image}


def lines_of(text: str) -> list[str]:
    """Return the lines of a text that aren't empty."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def _data(line: str) -> str | dict[str, str]:
    """Parse `name = location`, or a location alone."""
    name, equals, location = line.partition(" = ")
    return {"name": name.strip(), "location": location.strip()} if equals else line


def wrong_of(error: SubletError) -> tuple[str, FormError]:
    """Return the form's field that an error is about, or an empty text, and what to show there."""
    wrong = FormError(error.message, error.advice)
    path = error.values.get("field") if isinstance(error, BadRequest) else None
    return (field_of(path) if isinstance(path, str) else "", wrong)


def field_of(path: str) -> str:
    """Return the form's field for a field of a request: `compute.cores.min` is `cores`."""
    parts = [part.partition("[")[0] for part in path.split(".")]
    return next((FIELDS[part] for part in parts if part in FIELDS), "")


def values_of(request: Request) -> Values | None:
    """Return the form's values that ask for this again; None if the form can't express all of it."""
    executable = request.executable
    starts: tuple[Window | Recurring, ...] = (*request.windows, *request.recurring)
    is_plain = all(place == PlaceWish(place.name) for place in request.places)
    others = (request.storage, request.compute.disk.max, request.costs, request.metrics, request.after, request.pledge)
    if executable is None or not is_plain or any(others) or len(starts) > 1:
        return None
    typed = _executable(executable)
    paths = {volume.resource: volume.path for volume in request.compute.volumes}
    data = [_line(item, paths.get(item.name, "")) for item in request.data]
    if typed is None or None in data:
        return None
    compute = request.compute
    return (
        EMPTY
        | typed
        | {
            "name": executable.name,
            "cores": _counts(compute.cores),
            "memory": _memories(compute.memory),
            "gpus": _counts(compute.gpus) if compute.gpus.max else "",
            "nodes": _counts(compute.nodes) if compute.nodes.max > 1 else "",
            "time": duration_text(request.duration),
            "start": _start(starts[0]) if starts else "",
            "data": "\n".join(line for line in data if line),
            "places": ", ".join(place.name for place in request.places),
            "platform": request.platform,
        }
        | fill_scheduler_fields(request.scheduler)
    )


def _executable(executable: Executable) -> Values | None:
    fields = dict(executable.fields)
    if executable.kind in ("command", "docker-container"):
        each_node = {"each_node": "true"} if fields.pop("each_node", False) else {}
        typed = _fill_command(fields) if executable.kind == "command" else _fill_image(fields)
        return typed | each_node if typed else None
    if executable.kind == "steps":
        return _fill_steps(fields)
    requirements = fields.pop("requirements", [])
    plain = all(isinstance(line, str) for line in requirements)
    if executable.kind == "jupyter-notebook" and set(fields) == {"location"} and plain:
        return {"what": "notebook", "notebook": fields["location"], "requirements": "\n".join(requirements)}
    if executable.kind == "interactive" and set(fields) <= SAID_OF_INTERACTIVE and plain:
        typed = {"interface": fields.get("interface", "lab"), "idle": str(fields.get("idle", ""))}
        return {"what": "interactive", **typed, "requirements": "\n".join(requirements)}
    return None


def _fill_command(fields: Mapping[str, Any]) -> Values | None:
    """Return the form's values for a command; None if it has more than its words or script."""
    if set(fields) == {"script"}:
        return {"what": "command", "script": str(fields["script"])}
    return {"what": "command", "script": shlex.join(fields["argv"])} if set(fields) == {"argv"} else None


def _fill_image(fields: Mapping[str, Any]) -> Values | None:
    """Return the form's values for a container; None if it has more than an image and a command."""
    image = _name_image(fields.get("image"))
    if not image or not set(fields) <= {"image", "command"}:
        return None
    return {"what": "image", "image": image, "image_run": shlex.join(fields.get("command", []))}


def _name_image(image: Any) -> str | None:
    """Return the form's value for an image; None if it has more than a location."""
    locations = image.get("locations") or [] if isinstance(image, Mapping) else []
    return str(locations[0]) if set(image or ()) == {"locations"} and len(locations) == 1 else None


def _fill_steps(fields: Mapping[str, Any]) -> Values | None:
    """Return the form's values for steps; None if lines can't express all of them."""
    how = [name for name in STEPS_HOW if fields.get(name)]
    image = _name_image(fields["image"]) if "image" in fields else ""
    is_plain = set(fields) <= {"steps", "image", *STEPS_HOW} and len(how) < 2
    if not is_plain or image is None or any(step.get("environment") for step in fields["steps"]):
        return None
    lines = [write_step(str(step.get("name", "")), step["argv"]) for step in fields["steps"]]
    if None in lines:
        return None
    steps = "\n".join(line for line in lines if line)
    return {"what": "steps", "steps": steps, "steps_how": "".join(how), "steps_image": image}


def _line(data: Data, path: str) -> str | None:
    """Return the form's line for data at this path; None if a line can't express it."""
    if data.kind != "simple-data-resource" or data.storage or data.size or data.checksum or data.fields:
        return None
    if is_data_url(data.location):
        return None
    if path == last_name(data.location):
        return data.location
    return f"{data.name} = {data.location}" if path.lstrip("/") in ("", f"data/{directory_name(data.name)}") else None


def _counts(counts: Range) -> str:
    return str(counts.min) if counts.min == counts.max else f"{counts.min}-{counts.max}"


def _memories(sizes: Range) -> str:
    low, high = memory_text(sizes.min), memory_text(sizes.max)
    return low if low == high else f"{low}-{high}"


def _start(start: Window | Recurring) -> str:
    if isinstance(start, Window):
        return f"{machine(start.start)}/{machine(start.end)}"
    days = ",".join(DAYS[day] for day in start.days)
    until = f" until {machine(start.until)}" if start.until else ""
    return f"{days} {start.begins}-{start.ends} {start.zone}{until}"
