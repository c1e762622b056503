"""Reads `sublet.yaml`, Sublet's own manifest."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from typing import Any

from sublet.apps.manifests.lines import Path
from sublet.apps.manifests.page import ManifestPage
from sublet.apps.manifests.places import read_places
from sublet.apps.model import resources as resources
from sublet.apps.model.manifest import (
    EXECUTION,
    OWN,
    STAGES,
    AppImage,
    AppStage,
    Input,
    Manifest,
    Parameter,
    ResourceBounds,
)
from sublet.apps.model.parameters import KEYWORDS, MOST, schema_problems
from sublet.booking.model.amounts import quote_value
from sublet.kernel.shell_operators import find_operator

FILE = OWN
FIELDS = (
    "name",
    "title",
    "description",
    "image",
    "run",
    "script",
    "notebook",
    "stages",
    "parameters",
    "resources",
    "data",
    "places",
    "results",
    "systems",
    "default_system",
    "environment",
    "writable",
    "estimated_runtime",
)
_IMAGE = ("name", "location", "digest")
_STAGE = ("run", "script", "each")
_BOUNDS = ("min", "max", "default", "step")
_INPUT = ("required", "description")
_PARAMETER = (*sorted(KEYWORDS), "unit", "required")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_NUMERAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_BOUNDING = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "step")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN_PATH = re.compile(r"(?!/)(?!.*(^|/)\.\.(/|$))[^\x00-\x1f]+")


def read(page: ManifestPage) -> Manifest:
    """Read the manifest of a document; problems are noted on the page."""
    value = page.value
    page.note_unknown((), value, FIELDS, page.error)
    if "name" not in value:
        page.error((), "a name is needed; write `name: my-app`.")
    name = page.a_text(("name",), value.get("name"), "app")
    if not NAME.fullmatch(name):
        page.error(("name",), f"{quote_value(name)} can't be a name: letters, digits, `.`, `_` and `-`, at most 63.")
    return Manifest(
        name=name,
        source=FILE,
        title=page.a_text(("title",), value.get("title")),
        description=page.a_text(("description",), value.get("description")),
        stages=_stages(page),
        image=_image(page, ("image",), value.get("image")),
        writable=page.a_flag(("writable",), value.get("writable")),
        parameters=_parameters(page),
        resources=_resources(page),
        data=_data(page),
        results=_results(page),
        systems=page.texts(("systems",), value.get("systems")),
        default_system=_default_system(page),
        environment=_environment(page),
        estimated_runtime=page.a_text(("estimated_runtime",), value.get("estimated_runtime")),
        notebook=page.a_text(("notebook",), value.get("notebook")),
        places=read_places(page),
    )


def _image(page: ManifestPage, path: Path, value: Any) -> AppImage:
    if value is None:
        page.warn(
            (), "there is no image: it runs only on one's own machine, never in a gateway; write `image: python`."
        )
        return AppImage()
    if isinstance(value, str):
        location, at, digest = value.partition("@")
        plain = not at and NAME.fullmatch(value)
        return AppImage(name=value) if plain else AppImage(location=location, digest=_digest(page, path, digest))
    fields = page.a_map(path, value)
    page.note_unknown(path, fields, _IMAGE, page.error)
    image = AppImage(
        page.a_text((*path, "name"), fields.get("name")),
        page.a_text((*path, "location"), fields.get("location")),
        _digest(page, (*path, "digest"), page.a_text((*path, "digest"), fields.get("digest"))),
    )
    if bool(image.name) == bool(image.location):
        page.error(path, "an image has either a name that the operator knows, or a location.")
    return image


def _digest(page: ManifestPage, path: Path, digest: str) -> str:
    if digest and not _DIGEST.fullmatch(digest):
        page.error(path, f"{quote_value(digest)} is not a digest: sha256: and 64 hexadecimal digits.")
    return digest


def _stages(page: ManifestPage) -> tuple[AppStage, ...]:
    value = page.value
    given = page.a_map(("stages",), value.get("stages"))
    page.note_unknown(("stages",), given, STAGES, page.error)
    stages = {name: _stage(page, name, ("stages", name), given[name]) for name in STAGES if name in given}
    short = {name: value[name] for name in ("run", "script") if name in value}
    if "notebook" in value:
        if short or EXECUTION in stages:
            page.error(("notebook",), "there is another command too; say once what is to run.")
        if not value["notebook"]:
            page.error(("notebook",), "notebook is the path of one among the app's files.")
        stages[EXECUTION] = AppStage(EXECUTION)  # completed from the notebook later
    elif short:
        if EXECUTION in stages:
            page.error((min(short),), "there is stages.execution too; say once what is to run.")
        stages[EXECUTION] = _stage(page, EXECUTION, (), short)
    if EXECUTION not in stages:
        page.error(
            ("stages",), "nothing is to run; write `run: python main.py`, `notebook: main.ipynb`, or stages.execution."
        )
    return tuple(stages[name] for name in STAGES if name in stages)


def _stage(page: ManifestPage, name: str, path: Path, value: Any) -> AppStage:
    fields = {"run": value} if isinstance(value, str | list) else page.a_map(path, value)
    page.note_unknown(path, fields, _STAGE, page.error)
    each = fields.get("each", "once" if name != EXECUTION or not path else "task")
    if each not in ("once", "task"):
        page.error((*path, "each"), f"each is once or task, not {quote_value(each)}.")
    if ("run" in fields) == ("script" in fields):
        page.error(path, "a stage has either run (words) or script (text).")
        return AppStage(name)
    if "script" in fields:
        script = page.a_text((*path, "script"), fields["script"])
        if not script.strip():
            page.error((*path, "script"), "the script is empty.")
        return AppStage(name, script=script, each=each == "task")
    return AppStage(name, _words(page, (*path, "run"), fields["run"]), each=each == "task")


def _words(page: ManifestPage, path: Path, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        shelled = find_operator(value)
        try:
            value = shlex.split(value)
        except ValueError as error:
            page.error(path, f"{quote_value(value)} can't be split into words: {error}.")
            return ()
        if shelled:
            page.warn(
                path, f"no shell reads run: {shelled} is a word like others; put it under script if it is not meant."
            )
    words = value if isinstance(value, list) else []
    if not words or not all(isinstance(word, str | int | float) for word in words):
        page.error(path, "run is a command: text, or a list of words.")
        return ()
    return tuple(str(word).lower() if isinstance(word, bool) else str(word) for word in words)


def _parameters(page: ManifestPage) -> tuple[Parameter, ...]:
    read = []
    for name, value in few(page, ("parameters",), page.value.get("parameters")):
        path = ("parameters", name)
        fields = page.a_map(path, value)
        page.note_unknown(path, fields, _PARAMETER, page.error)
        schema = _numbers({key: item for key, item in fields.items() if key in KEYWORDS})
        unit = page.a_text((*path, "unit"), fields.get("unit"))
        parameter = Parameter(name, schema, unit, page.a_flag((*path, "required"), fields.get("required")))
        check_parameter(page, path, parameter)
        read.append(parameter)
    return tuple(read)


def _numbers(schema: dict[str, Any]) -> dict[str, Any]:
    """Convert texts to numbers where numbers are expected: YAML reads `0.10` and `1e-6` as text here."""
    numeric = schema.get("type") in ("integer", "number")
    keys = (*_BOUNDING, *(("default", "const") if numeric else ()))
    changed = schema | {key: _as_number(schema[key]) for key in keys if key in schema}
    for key in ("enum", "examples"):
        if numeric and isinstance(changed.get(key), list):
            changed[key] = [_as_number(item) for item in changed[key]]
    if isinstance(changed.get("items"), dict):
        changed["items"] = _numbers(changed["items"])
        if changed["items"].get("type") in ("integer", "number") and isinstance(changed.get("default"), list):
            changed["default"] = [_as_number(item) for item in changed["default"]]
    return changed


def _as_number(value: Any) -> Any:
    if not isinstance(value, str) or len(value) > 40 or not _NUMERAL.fullmatch(value):
        return value
    number = float(value)
    if not math.isfinite(number):
        return value
    return int(number) if number.is_integer() and abs(number) < 1 << 53 else number


def few(page: ManifestPage, path: Path, value: Any) -> list[tuple[str, Any]]:
    """Return the parameters by name; note an error if there are too many."""
    said = page.a_map(path, value)
    if len(said) > MOST:
        page.error(path, f"an app has up to {MOST} parameters, not {len(said)}.")
        return []
    return list(said.items())


def check_parameter(page: ManifestPage, path: Path, parameter: Parameter) -> None:
    """Note what is wrong with a parameter's name and schema."""
    if not parameter.name or len(parameter.name) > 200 or not parameter.name.isprintable():
        page.error(path, f"{quote_value(parameter.name)} can't be the name of a parameter.")
    elif not VARIABLE.fullmatch(f"param_{parameter.name}"):
        page.warn(path, f"{quote_value(parameter.name)} can't be an environment variable: it is only in params.json.")
    for keyword, why in schema_problems(parameter):
        page.error((*path, keyword) if keyword else path, f"the parameter {parameter.name}: {why}.")


def _resources(page: ManifestPage) -> dict[str, ResourceBounds]:
    found = {}
    said = page.a_map(("resources",), page.value.get("resources"))
    page.note_unknown(("resources",), said, resources.NAMES, page.error)
    for name, value in said.items():
        path = ("resources", name)
        if name in resources.NAMES and (bounds := _bounds(page, path, name, value)):
            for why in resources.check_bounds(name, bounds):
                page.error(path, f"{name}: {why}.")
            found[name] = bounds
    return found


def _bounds(page: ManifestPage, path: Path, name: str, value: Any) -> ResourceBounds | None:
    if isinstance(value, Mapping):
        page.note_unknown(path, value, _BOUNDS, page.error)
        said = {key: page.at((*path, key), resources.parse, name, value[key]) for key in _BOUNDS if key in value}
        if None in said.values() or not said:
            return None
        low = said.get("min", min(resources.NAMES[name][1], *said.values()))
        high = said.get("max", said.get("default", low))
        return ResourceBounds(low, high, said.get("default", low), said.get("step", 1))
    low_text, dash, high_text = value.partition("-") if isinstance(value, str) else (value, "", "")
    low = page.at(path, resources.parse, name, low_text.strip() if dash else low_text)
    high = page.at(path, resources.parse, name, high_text.strip()) if dash else low
    return None if low is None or high is None else ResourceBounds(low, high, low)


def _data(page: ManifestPage) -> tuple[Input, ...]:
    inputs = []
    for name, value in page.a_map(("data",), page.value.get("data")).items():
        path = ("data", name)
        fields = page.a_map(path, value)
        page.note_unknown(path, fields, _INPUT, page.error)
        if not NAME.fullmatch(name):
            page.error(path, f"{quote_value(name)} can't be the name of data.")
        required = page.a_flag((*path, "required"), fields.get("required"))
        inputs.append(Input(name, required, page.a_text((*path, "description"), fields.get("description"))))
    return tuple(inputs)


def _results(page: ManifestPage) -> tuple[str, ...]:
    paths = page.texts(("results",), page.value.get("results"))
    for number, path in enumerate(paths):
        if not _PLAIN_PATH.fullmatch(path):
            page.error(("results", number), f"{quote_value(path)} is not a path below the result folder.")
    return paths


def _default_system(page: ManifestPage) -> str:
    name = page.a_text(("default_system",), page.value.get("default_system"))
    systems = page.value.get("systems")
    if name and isinstance(systems, list | str) and name not in (systems if isinstance(systems, list) else [systems]):
        page.error(("default_system",), f"{quote_value(name)} is not one of its systems.")
    return name


def _environment(page: ManifestPage) -> dict[str, str]:
    variables = {}
    for name, value in page.a_map(("environment",), page.value.get("environment")).items():
        path = ("environment", name)
        if not VARIABLE.fullmatch(name):
            page.error(path, f"{quote_value(name)} can't be the name of an environment variable.")
        elif not isinstance(value, str | int | float):
            page.error(path, f"the value of {name} must be text.")
        else:
            variables[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return variables
