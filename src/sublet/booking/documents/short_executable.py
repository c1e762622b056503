"""The executable of the short form, expanded to the full form."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from sublet.booking.documents.kinds import uri_of
from sublet.booking.documents.shapes import Document
from sublet.booking.model.amounts import quote_value
from sublet.kernel.document_fields import a_map, a_name, a_text, refuse, refuse_unknown_fields
from sublet.kernel.shell_operators import find_operator

# The fields that name an executable, and the kind that each makes.
EXECUTABLES = {
    "run": "command",
    "script": "command",
    "image": "docker-container",
    "notebook": "jupyter-notebook",
    "compose": "docker-compose",
    "bag": "bag",
    "steps": "steps",
    "interactive": "interactive",
    "app": "app",
}
# Further fields of each kind, and their names in the full form.
_EXTRAS = {
    "command": {"env": "environment", "each_node": "each_node"},
    "docker-container": {
        "env": "environment",
        "entrypoint": "entrypoint",
        "tasks": "tasks",
        "each_node": "each_node",
    },
    "jupyter-notebook": {"env": "environment", "parameters": "parameters", "requirements": "requirements"},
    "docker-compose": {"env": "environment"},
    "bag": {"env": "environment"},
    "steps": {"env": "environment"},
    "interactive": {"env": "environment", "requirements": "requirements", "idle": "idle"},
    "app": {"parameters": "parameters", "version": "version", "tasks": "tasks"},
}
_STEPS = ("run", "together", "keep_going")
_STEP = ("name", "run", "env", "cores", "time")
_BAG = ("tasks", "template", "grid", "table", "strict", "file", "retries", "parallel", "parts")
AUTO = "auto"
WEB_FIELDS = ("command", "port")


def expand_executable(short: Document) -> tuple[str, Document | None]:
    """Return the kind of the executable and its full form; None if nothing is run."""
    if "web" in short:
        short = _web_application(short)
    given = [name for name in EXECUTABLES if name in short]
    if given == ["run", "image"]:
        given = ["image"]  # `run` is the command in the image
    if given in (["image", "notebook"], ["image", "steps"], ["image", "interactive"]):
        given = given[1:]  # it runs in the image
    if len(given) > 1:
        refuse(given[1], f"there is {given[0]} too", "Say one thing to run.")
    kind = EXECUTABLES[given[0]] if given else ""
    extras = _EXTRAS.get(kind, {})
    for name in ("env", "entrypoint", "parameters", "requirements", "version", "tasks", "each_node", "idle"):
        if name in short and name not in extras:
            refuse(name, f"{given[0] if given else 'nothing to run'} has no {name}", "Remove it.")
    if not given:
        return kind, None
    meta = {name: short[name] for name in ("name", "description") if name in short}
    fields = {extras[name]: short[name] for name in extras if name in short}
    if given[0] in ("notebook", "steps", "interactive") and "image" in short:
        fields["image"] = short["image"]
    fields |= {name: short[name] for name in WEB_FIELDS if "web" in short and name in short}
    what = _read_steps(short["steps"]) if given[0] == "steps" else _what(given[0], short)
    return kind, {"kind": uri_of("executable", kind), "meta": meta, **what, **fields}


def _read_steps(value: Any) -> Document:
    """Expand steps, from a list or from a map that also says how they run; a step is a command, or a map with `run`."""
    whole = {"run": value} if isinstance(value, list) else a_map(value, "steps")
    refuse_unknown_fields(whole, _STEPS, "steps")
    steps: list[Document] = []
    for number, step in enumerate(_items(whole.get("run", []), "steps")):
        where = f"steps[{number}]"
        known = {"run": step} if isinstance(step, str | list) else a_map(step, where)
        refuse_unknown_fields(known, _STEP, where)
        named = {"name": known["name"]} if "name" in known else {}
        variables = {"environment": known["env"]} if "env" in known else {}
        sizes = {name: known[name] for name in ("cores", "time") if name in known}
        steps.append({**named, "argv": _words(known.get("run", []), f"{where}.run"), **variables, **sizes})
    return {"steps": steps, **{name: whole[name] for name in ("together", "keep_going") if name in whole}}


def _web_application(short: Document) -> Document:
    """Turn a command with `web` into an interactive session on this port; with `auto`, the port is chosen for it."""
    port = short["web"]
    is_told = port is True or port == AUTO
    if not is_told and (type(port) is not int or not 0 < port < 65536):
        refuse("web", f"{quote_value(port)} is not a port", "Write a number from 1 to 65535, or auto.")
    rest = {name: value for name, value in short.items() if name != "run"}
    words = {"command": _words(short["run"], "run")} if "run" in short else {}
    return rest | words | {"interactive": "web"} | ({} if is_told else {"port": port})


def _what(given: str, short: Document) -> Document:
    value = short[given]
    if given == "run":
        return {"argv": _words(value, "run")}
    if given in ("script", "compose"):
        return {given: value}
    if given == "notebook":
        return {"location": a_text(value, "notebook", 4096)}
    if given == "app":
        return {"app": a_name(value, "app")}
    if given == "interactive":
        return {"interface": "lab" if value is True else a_text(value, "interactive")}
    if given == "image":
        image = {"locations": [value]} if isinstance(value, str) else value
        return {"image": image} | ({"command": _words(short["run"], "run")} if "run" in short else {})
    if isinstance(value, list):
        value = {"tasks": value}
    refuse_unknown_fields(a_map(value, "bag"), _BAG, "bag")
    bag = dict(value)
    if "tasks" in bag:
        bag["tasks"] = [_task(task, f"bag.tasks[{i}]") for i, task in enumerate(_items(bag["tasks"], "bag.tasks"))]
    if "template" in bag:
        bag["template"] = _words(bag["template"], "bag.template")
    return bag


def _items(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        refuse(path, f"{quote_value(value)} is not a list", "Write one item a line, each after a dash.")
    return value


def _task(task: Any, path: str) -> Any:
    return (
        dict(task) | {"argv": _words(task.get("argv"), f"{path}.argv")}
        if isinstance(task, Mapping)
        else _words(task, path)
    )


WITH_A_SHELL = (
    "For a shell, write a `script`, or sh -c 'a {0} b' (in a list: [sh, -c, 'a {0} b']). "
    "If it is meant as a word, put it in quotes: '{0}'."
)


def _words(value: Any, path: str) -> list[str]:
    """Split a command line into words; a list may also contain numbers."""
    if isinstance(value, str):
        try:
            words = shlex.split(value)
        except ValueError as error:
            refuse(path, f"{quote_value(value)} can't be split into words: {error}", "Write it as a list of words.")
        if not words:
            refuse(path, "there is nothing to run")
        if operator := find_operator(value):
            refuse(
                path, f"no shell reads it, and {operator} would be a word like others", WITH_A_SHELL.format(operator)
            )
        return words
    return [_word(word, f"{path}[{i}]") for i, word in enumerate(_items(value, path))]


def _word(value: Any, path: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        refuse(path, f"{quote_value(value)} is not a word", "Put it in quotes.")
    return str(value)
