"""The kind `docker-compose`: several containers that reach one another by name, run by Podman."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sublet.booking.model.job import Program
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data, Executable, Request
from sublet.kinds import container, images
from sublet.kinds import fields as f
from sublet.kinds.compose_file import BadCompose, ComposeService, read_compose
from sublet.kinds.pod_images import KUBERNETES
from sublet.kinds.port import Kind, Setting, Way, WayNeed
from sublet.kinds.travel import PROGRAM, pack

FIELDS = ("compose", "environment")
PODMAN = "podman"
ALONE = "it runs one container, and only Podman lets several share a network of their own here"
PLAN = ".sublet/compose.json"


class ComposeKind(Kind):
    """The kind `docker-compose`."""

    name = "docker-compose"
    uri = "urn:sublet:kind:executable:docker-compose"

    def check(self, executable: Executable, request: Request) -> Sequence[Reason]:
        """Return what in the file isn't supported here, or which images can't be used."""
        fields = executable.fields
        reasons = f.unknown_fields(fields, FIELDS) + f.check_environment(fields.get("environment"))
        reasons += f.check_local_volumes(request, "a Compose file")
        if any(reason.kind == f.INVALID for reason in reasons):
            return reasons
        try:
            services = read_services(executable)
        except BadCompose as wrong:
            return [*reasons, f.invalid(f"compose.{wrong.field}", wrong.message, nearest=wrong.nearest)]
        for service in services:
            field = f"compose.services.{service.name}.image"
            reasons += container.check_location(field, split_image(service)[0])
        return reasons

    def ways(self, executable: Executable, tools: Mapping[str, str]) -> Sequence[Way]:
        """Return the way by Podman."""
        services = read_services(executable)
        sources = [images.read_location(split_image(each)[0], number) for number, each in enumerate(services)]
        if not all(PODMAN in container.tools_for([source], tools) for source in sources):
            return []
        return [
            Way(
                PODMAN,
                contained=not any(images.is_ours(source) for source in sources),
                program=partial(make_program, services, sources),
                interactive=any(service.port for service in services),
            )
        ]

    def list_needs(self, executable: Executable) -> Sequence[WayNeed]:
        """Return what Podman needs, and why other tools can't do it."""
        others = [
            WayNeed(tool, ("python3", *parts), ALONE)
            for tool, (parts, _) in container.TOOLS.items()
            if tool not in (PODMAN, "singularity")
        ]
        return [WayNeed(PODMAN, ("python3", PODMAN)), *others, WayNeed(KUBERNETES, (KUBERNETES,), ALONE)]

    def needs(self, executable: Executable) -> str:
        """Return that it needs Podman."""
        return "podman, and python3"

    def brings(self, executable: Executable) -> Sequence[Data]:
        """List the images that have an address; others are pulled where the session runs."""
        return images.to_bring([split_image(service)[0] for service in read_services(executable)])


def read_services(executable: Executable) -> tuple[ComposeService, ...]:
    """Return the services of the Compose file."""
    return read_compose(executable.fields.get("compose"), f.environment_of(executable.fields))


def split_image(service: ComposeService) -> tuple[str, str]:
    """Return the image's location and digest."""
    location, _, digest = service.image.partition("@sha256:")
    return location, f"sha256:{digest}" if digest else ""


def make_program(services: Sequence[ComposeService], sources: Sequence[Mapping[str, str]], setting: Setting) -> Program:
    """Build the runner and its plan."""
    plans = [_plan(service, source, setting) for service, source in zip(services, sources, strict=True)]
    port = next((service.port for service in services if service.port), 0)
    plan = {
        "services": plans,
        "holder": container.image_plan(PODMAN, (), "", setting) | {"port": port, "path": "/"},
        "session": setting.directory,
        "writable": [f"{setting.directory}/{mount.source}" for mount in setting.mounts if not mount.read_only],
    }
    travels = {
        PROGRAM: pack("compose_job", "kinds/inside/compose_volumes.py", *container.PARTS),
        PLAN: json.dumps(plan).encode(),
    }
    environment = {"SUBLET_SECRET": setting.secret} if port else {}
    connects = "uri:http" if port else ""
    words = (setting.tool("python3"), PROGRAM)
    return Program(words, environment, travels, tools=(PODMAN,), connects=connects)


def _plan(service: ComposeService, source: Mapping[str, str], setting: Setting) -> dict[str, Any]:
    """Return the container runner's plan for one service; it sees only the files of its volumes."""
    whole = container.image_plan(PODMAN, (source,), split_image(service)[1], setting)
    own = {
        key: f"{whole[key]}{'-' if key == 'name' else '/'}{service.name}" for key in ("name", "image", "private")
    } | {"work": f"{setting.directory}/compose/{service.name}"}
    volumes = [[each.source, each.target, each.read_only, each.is_named] for each in service.volumes]
    return {
        **whole,
        **own,
        "service": service.name,
        "after": dict(service.after),
        "volumes": volumes,
        "entrypoint": list(service.entrypoint) or None,
        "command": list(service.command),
        "environment": dict(service.environment),
        "start": service.directory,
        "inside": "/sublet/work",
        "in_work": False,
        "places": [],
        "mounts": [],
        "port": 0,
        "path": "/",
    }


COMPOSE = ComposeKind()
