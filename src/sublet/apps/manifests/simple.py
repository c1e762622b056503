"""The simplest app: `entry.sh` is run and reads `params.json`; the image is the maintainer's."""

from __future__ import annotations

from typing import Any

from sublet.apps.manifests.page import ManifestPage
from sublet.apps.manifests.sublet_yaml import check_parameter, few
from sublet.apps.model.manifest import EXECUTION, JOB, AppImage, AppStage, Manifest, Parameter
from sublet.booking.model.amounts import quote_value

FILE = "entry.sh"
PARAMS = "params.json"
_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "number"),  # a default of 2 doesn't mean that 2.5 would be wrong
    (float, "number"),
    (str, "string"),
    (list, "array"),
)


def read(page: ManifestPage, name: str, params: ManifestPage | None) -> Manifest:
    """Build the manifest of an app without one; values in its `params.json` are defaults."""
    script = page.value["script"]
    if not script.strip():
        page.error((), f"{FILE} is empty: there is nothing to run.")
    first = script.partition("\n")[0].strip()
    words = first[2:].split(None, 1) if first.startswith("#!") else ()
    stage = AppStage(EXECUTION, (*(words or ("sh",)), FILE))
    return Manifest(
        name,
        FILE,
        (stage,),
        image=AppImage(),
        folder=JOB,
        writable=True,
        parameters=parameters(params) if params else (),
        any_parameters=params is None,
    )


def parameters(page: ManifestPage) -> tuple[Parameter, ...]:
    """Read `params.json` as parameters with defaults."""
    return tuple(parameter(page, name, value) for name, value in few(page, (), page.value))


def parameter(page: ManifestPage, name: str, value: Any) -> Parameter:
    """Make a parameter from its default."""
    kind = next((type_name for held, type_name in _TYPES if isinstance(value, held)), "")
    if not kind:
        page.error(
            (name,), f"{quote_value(value)} can't be a parameter's default: text, a number, true, false or a list."
        )
    made = Parameter(name, {"type": kind or "string", "default": value} if kind else {})
    if kind:
        check_parameter(page, (name,), made)
    return made
