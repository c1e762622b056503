"""An app's manifest: its image, stages, parameters, resources, data and results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from sublet.kernel.errors import BadManifest

FORMAT = 1  # of a stored manifest
PRE, EXECUTION, POST = "pre", "execution", "post"
STAGES = (PRE, EXECUTION, POST)  # in the order in which they run
EXECUTABLE, DATA, RESULT = "/job/executable", "/job/data", "/job/result"  # where an app sees its folders
JOB = "/job"
OWN = "sublet.yaml"  # Sublet's own format


@dataclass(frozen=True, slots=True)
class AppImage:
    """The image of an app: a name that the operator knows, or a location; pinned once it has a digest."""

    name: str = ""
    location: str = ""
    digest: str = ""

    def __bool__(self) -> bool:
        """Whether there is an image at all."""
        return bool(self.name or self.location)


@dataclass(frozen=True, slots=True)
class AppStage:
    """One step of an app: words or a script, run once or once per task."""

    name: str
    argv: tuple[str, ...] = ()
    script: str = ""
    each: bool = False  # once per task


@dataclass(frozen=True)
class Parameter:
    """A value that people who run the app can choose, described by a JSON Schema with its title and default."""

    name: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    unit: str = ""
    required: bool = False

    @property
    def has_default(self) -> bool:
        """Whether it can be left out; 0, "" and false are valid defaults."""
        return "default" in self.schema


@dataclass(frozen=True, slots=True)
class ResourceBounds:
    """How much of a resource the app can use; memory in bytes, time in seconds."""

    min: int
    max: int
    default: int
    step: int = 1


@dataclass(frozen=True, slots=True)
class Input:
    """Data that the app reads, below its data folder."""

    name: str
    required: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True)
class AppPlace:
    """A directory of the system that the app shares with other sessions."""

    name: str
    path: str = ""  # where the app sees it; empty: as the place was declared
    writable: bool = False
    required: bool = True  # whether the app can't run without it


@dataclass(frozen=True)
class Manifest:
    """A manifest, whatever its format."""

    name: str
    source: str  # the file it was read from: a manifest, or the script, program or notebook that is run
    stages: tuple[AppStage, ...]
    description: str = ""
    image: AppImage = AppImage()
    folder: str = EXECUTABLE  # where the app sees its code, and starts
    writable: bool = False  # whether it may change its own copy of the code
    parameters: tuple[Parameter, ...] = ()
    any_parameters: bool = False  # whether it also takes undeclared parameters
    resources: Mapping[str, ResourceBounds] = field(default_factory=dict)  # by the names in apps.model.resources
    data: tuple[Input, ...] = ()
    results: tuple[str, ...] = ()  # paths in its result folder that are offered first
    systems: tuple[str, ...] = ()  # where it is known to run; empty: anywhere
    default_system: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    estimated_runtime: str = ""  # in the author's words
    notebook: str = ""  # the notebook that its execution stage runs, if any
    title: str = ""  # its name for people, if that differs
    places: tuple[AppPlace, ...] = ()

    @property
    def one_folder(self) -> bool:
        """Whether a single input is the data folder itself, as in all formats but Sublet's own."""
        return self.source != OWN

    def parameter(self, name: str) -> Parameter | None:
        """Return a parameter by name, or None."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)

    def pin_to(self, location: str, digest: str) -> Manifest:
        """Return the manifest with exactly this image."""
        return replace(self, image=replace(self.image, location=location, digest=digest))


_PARTS: dict[str, type] = {"stages": AppStage, "parameters": Parameter, "data": Input, "places": AppPlace}
_LISTS = ("results", "systems")
_SINGLE: dict[str, type] = {"image": AppImage}
# Left out if empty, so that older manifests keep their hash.
_LATER = ("notebook", "title", "places")


def to_json(manifest: Manifest) -> dict[str, Any]:
    """Return a manifest as plain values, for `from_json`."""
    document: dict[str, Any] = {"format": FORMAT}
    for name in (each.name for each in fields(Manifest)):
        value = getattr(manifest, name)
        if name in _LATER and not value:
            continue
        if name in _PARTS:
            document[name] = [_plain(each) for each in value]
        elif name in _SINGLE:
            document[name] = _plain(value)
        elif name == "resources":
            document[name] = {key: _plain(bounds) for key, bounds in value.items()}
        else:
            document[name] = list(value) if name in _LISTS else dict(value) if isinstance(value, Mapping) else value
    return document


def _plain(value: Any) -> dict[str, Any]:
    values = {each.name: getattr(value, each.name) for each in fields(value)}
    return {name: list(item) if isinstance(item, tuple) else item for name, item in values.items()}


def from_json(value: Mapping[str, Any]) -> Manifest:
    """Read a stored manifest; raise BadManifest if it is invalid or of a later format."""
    if value.get("format") != FORMAT:
        raise BadManifest(problem=f"it is of format {value.get('format')!r}, and only {FORMAT} can be read here.")
    values = {name: item for name, item in value.items() if name != "format"}
    try:
        for name, kind in _PARTS.items():
            values[name] = tuple(_make(kind, item) for item in values.get(name, ()))
        for name, kind in _SINGLE.items():
            values[name] = _make(kind, values.get(name, {}))
        values["resources"] = {name: ResourceBounds(**bounds) for name, bounds in values.get("resources", {}).items()}
        values |= {name: tuple(values.get(name, ())) for name in _LISTS}
        return Manifest(**values)
    except (TypeError, AttributeError) as error:
        raise BadManifest(problem=f"it is not whole: {error}") from error


def _make(kind: type, values: Mapping[str, Any]) -> Any:
    return kind(**{name: tuple(item) if name == "argv" else item for name, item in values.items()})
