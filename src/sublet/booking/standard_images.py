"""Resolves the names of images in the settings, and adds the operator's own recipes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sublet.apps.model.manifest import AppImage
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Executable, Request
from sublet.kernel.settings import Settings
from sublet.kinds.in_image import IMAGE, STANDARD
from sublet.kinds.interactive import INTERFACES
from sublet.kinds.recipes import RECIPE, RECIPES
from sublet.people.model.person import Person

NOTEBOOK, INTERACTIVE = "jupyter-notebook", "interactive"
IN_CONTAINERS = ("docker-container", "steps")  # kinds that run in any image
SET_HERE = (STANDARD, RECIPE)  # fields that only the service sets
PLAIN = re.compile(r"[a-z][a-z0-9-]*")  # may be a name in the settings; a registry's name has more


@dataclass
class StandardImages:
    """The operator's images and recipes."""

    settings: Settings
    needs_named: bool = False  # whether interactive sessions only run in the operator's images

    async def resolve(self, person: Person, request: Request) -> Request | Reason | None:
        """Return the request with the recipe and image that its names stand for, or with the standard image."""
        executable = request.executable
        if executable is not None and executable.kind in IN_CONTAINERS:
            return self._resolve_container(request, executable)
        if executable is None or executable.kind not in (NOTEBOOK, INTERACTIVE):
            return None
        fields = {name: value for name, value in executable.fields.items() if name not in SET_HERE}
        purpose = "notebook"
        if executable.kind == INTERACTIVE:
            purpose = str(fields.get("interface", "lab"))
            if no := self._find_unknown(purpose):
                return no
            if purpose in self.settings.recipes:
                fields[RECIPE] = self.settings.recipes[purpose].model_dump()
        named = fields.get(IMAGE)
        name = find_name(named) if named else self.settings.standard_images.get(purpose, "")
        if name:
            image = self.settings.images.get(name)
            if image is None:
                return self._refuse_image(f"There is no image called {name} here", name)
            fields[IMAGE if named else STANDARD] = describe(image)
        elif named and self.needs_named and executable.kind == INTERACTIVE:
            return self._refuse_image("Interactive sessions run in reviewed images here", str(named))
        return replace(request, executable=replace(executable, fields=fields))

    def _resolve_container(self, request: Request, executable: Executable) -> Request | Reason | None:
        """Resolve a container's image by its name in the settings; any other plain name is of the usual registry."""
        named = executable.fields.get(IMAGE)
        image = self.settings.images.get(find_name(named))
        if image is None:
            return None
        own = named if isinstance(named, Mapping) else {}
        if image.digest and own.get("digest", image.digest) != image.digest:
            message = f"The image called {find_name(named)} here has another digest: {image.digest}"
            return self._refuse_image(message, str(own["digest"]))
        fields = {**executable.fields, IMAGE: {**own, **describe(image)}}
        return replace(request, executable=replace(executable, fields=fields))

    def _find_unknown(self, interface: str) -> Reason | None:
        known = dict.fromkeys((*INTERFACES, *self.settings.recipes))
        if interface in known:
            return None
        there = ", ".join(known)
        message = f"There is no interface {interface} here; there are: {there}."
        return Reason("urn:invalid-value", "executable.interface", message, interface, there, "lab")

    def _refuse_image(self, message: str, wanted: str) -> Reason:
        there = ", ".join(sorted(self.settings.images)) or "none"
        words = f"{message}; there are: {there}."
        return Reason("urn:invalid-value", "executable.image", words, wanted, there, "registry/name:tag")


def find_name(image: Any) -> str:
    """Return the plain name of an image; empty if it is an address."""
    locations = image.get("locations") if isinstance(image, Mapping) else [image]
    only = locations[0] if isinstance(locations, list) and len(locations) == 1 else None
    return only if isinstance(only, str) and PLAIN.fullmatch(only) else ""


def describe(image: AppImage) -> Mapping[str, Any]:
    """Return an image of the settings in the form that executables use."""
    return {"locations": [image.location], **({"digest": image.digest} if image.digest else {})}


def list_interfaces(settings: Settings, chosen: str, *, in_images: bool) -> dict[str, str]:
    """Return the interfaces that can be opened, with their titles; with `in_images`, only those that have an image."""
    own = {"lab": "JupyterLab", "shell": "A shell"} | {name: recipe.title for name, recipe in RECIPES.items()}
    own |= {name: recipe.title or name for name, recipe in settings.recipes.items()}
    kept = {"lab", chosen, *settings.standard_images}  # a hub may have JupyterLab in images of its own
    return {name: title for name, title in own.items() if not in_images or name in kept}
