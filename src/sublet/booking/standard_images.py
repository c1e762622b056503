"""Which image a notebook or JupyterLab runs in: the one that someone names, or the operator's usual one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sublet.apps.model.manifest import AppImage
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Request
from sublet.kernel.settings import Settings
from sublet.kinds.in_image import IMAGE, STANDARD
from sublet.people.model.person import Person

PURPOSES = {"jupyter-notebook": "notebook", "interactive": "lab"}
PLAIN = re.compile(r"[a-z][a-z0-9-]*")  # what may be a name of the settings; a registry's has more


@dataclass
class StandardImages:
    """Knows the operator's images."""

    settings: Settings

    async def resolve(self, person: Person, request: Request) -> Request | Reason | None:
        """The request with the image that a name stands for, and with the usual one where none is named."""
        executable = request.executable
        if executable is None or executable.kind not in PURPOSES:
            return None
        fields = {name: value for name, value in executable.fields.items() if name != STANDARD}
        named = fields.get(IMAGE)
        usual = self.settings.standard_images.get(PURPOSES[executable.kind], "")
        name = find_name(named) if named else usual
        if name:
            image = self.settings.images.get(name)
            if image is None:
                there = ", ".join(sorted(self.settings.images)) or "none"
                message = f"There is no image called {name} here; there are: {there}."
                return Reason("urn:invalid-value", "executable.image", message, name, there, "registry/name:tag")
            fields[IMAGE if named else STANDARD] = describe(image)
        return replace(request, executable=replace(executable, fields=fields))


def find_name(image: Any) -> str:
    """The plain name by which an image is meant; empty: it says where it is."""
    locations = image.get("locations") if isinstance(image, Mapping) else [image]
    only = locations[0] if isinstance(locations, list) and len(locations) == 1 else None
    return only if isinstance(only, str) and PLAIN.fullmatch(only) else ""


def describe(image: AppImage) -> Mapping[str, Any]:
    """An image of the settings, as executables name theirs."""
    return {"locations": [image.location], **({"digest": image.digest} if image.digest else {})}
