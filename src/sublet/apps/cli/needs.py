"""What an app needs besides its image, as text, and whether the gateway one is signed in to has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from sublet.cli.output import Output
from sublet.kernel.errors import SubletError

if TYPE_CHECKING:
    from sublet.apps.model.facilities import Facilities, Had
    from sublet.apps.model.manifest import Manifest
    from sublet.apps.model.needs import Need

ANSWERS = {True: "yes", False: "no", None: "not known"}  # whether a gateway has something


@dataclass(frozen=True)
class Gateway:
    """The gateway that the user is signed in to, and what it has."""

    name: str
    has: Facilities


@dataclass(frozen=True)
class Needs:
    """What an app needs, and whether a gateway has it, if one was asked."""

    items: Sequence[tuple[Need, Had | None]]
    gateway: str = ""

    def as_values(self) -> list[dict[str, Any]]:
        """Return the needs as JSON values."""
        plain = [({"kind": need.kind.value, "what": need.what, "where": need.where}, had) for need, had in self.items]
        return [{**said, "had": had.has, "there": had.words} if had else said for said, had in plain]

    def as_lines(self) -> list[str]:
        """Return the needs as lines of text."""
        from sublet.apps.model.needs import describe_need

        lines = []
        for need, had in self.items:
            lines.append(f"needs {describe_need(need)}")
            lines += [f"  {self.gateway}: {ANSWERS[had.has]}, {had.words}"] if had else []
        return lines

    def can_run(self) -> str:
        """Say whether an app with these needs can be run; at the gateway, if one was asked."""
        if not self.gateway:
            return self._can_run_somewhere()
        if lacks := self._name_needs(has=False):
            return f"can't be run at {self.gateway}, which lacks {lacks}"
        unknown = self._name_needs(has=None)
        return f"can be run at {self.gateway}{f', if it has {unknown}' if unknown else ''}"

    def _can_run_somewhere(self) -> str:
        from sublet.apps.model.needs import NeedKind

        if any(need.kind is NeedKind.MOUNT for need, _ in self.items):
            return "can't be run as it is, since it needs a mount"
        names = self._names([need for need, _ in self.items])
        return f"can be run where there is {names}" if names else "can be run"

    def _name_needs(self, *, has: bool | None) -> str:
        return self._names([need for need, had in self.items if had and had.has is has])

    def _names(self, needs: Sequence[Need]) -> str:
        from sublet.apps.model.needs import name_need

        return ", ".join(dict.fromkeys(map(name_need, needs)))


def find_out(out: Output, needs: Sequence[Need], manifest: Manifest | None) -> Needs:
    """Return the needs, and whether the gateway has them; also the manifest's image, which only a gateway knows."""
    from sublet.apps.model.facilities import find_had, find_lacking_node
    from sublet.apps.model.needs import find_named_image

    gateway = _ask_gateway(out)
    if gateway is None:
        return Needs([(need, None) for need in needs])
    more = [*find_named_image(manifest), *find_lacking_node(manifest, gateway.has)] if manifest else []
    return Needs([(need, find_had(need, gateway.has)) for need in (*more, *needs)], gateway.name)


def _ask_gateway(out: Output) -> Gateway | None:
    """Return what the gateway has; None if the user isn't signed in to one, or if it doesn't answer, which is noted."""
    from sublet.apps.calls import apps
    from sublet.apps.model.facilities import Facilities
    from sublet.client.address import find_address

    address = find_address()
    if address.local:
        return None
    try:
        view = out.link().do(apps.facilities())
    except SubletError as error:
        out.note(f"What {address.host} has is not told: {error.message}")
        return None
    return Gateway(address.host, Facilities(**{field.name: getattr(view, field.name) for field in fields(Facilities)}))
