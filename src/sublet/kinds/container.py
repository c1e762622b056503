"""Kinds for container images, run by Podman, Apptainer, Docker or Charliecloud."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from sublet.booking.model.amounts import quote_value
from sublet.booking.model.job import Program
from sublet.booking.model.offer import Reason
from sublet.booking.model.places import variable_of
from sublet.booking.model.request import Data, Executable, Request
from sublet.booking.model.shape import sizes_of
from sublet.kinds import fields as f
from sublet.kinds import images, skaha
from sublet.kinds.pod_images import KUBERNETES, find_pod_ways
from sublet.kinds.port import Kind, Setting, Way, WayNeed
from sublet.kinds.travel import PROGRAM, pack

INSIDE = (
    *(
        "container_images",
        "container_mounts",
        "container_port",
        "container_runner",
        "container_start",
        "container_tools",
    ),
    *("container_unpacked", "container_variables"),
    *("desktop_server", "gate", "image_files", "inner_port", "listening", "task_launcher", "task_runner", "websocket"),
)
PARTS = ("kernel/container_network.py", *(f"kinds/inside/{name}.py" for name in INSIDE))
DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
ARCHITECTURES = {"amd64", "x86_64"}
KINDS = "https://www.purl.org/ivoa.net/Calycopis-openapi/schema/v1.0/kinds/executable"

# tool → its required programs, and whether it isolates code from the account's files and processes. Charliecloud shares
# processes and devices with the account, so it isn't for strangers' code.
TOOLS: dict[str, tuple[tuple[str, ...], bool]] = {
    "podman": (("podman",), True),
    "apptainer": (("apptainer",), True),
    "singularity": (("singularity",), True),
    "docker": (("docker",), True),
    "charliecloud": (("ch-run",), False),
}
CALLED = (*TOOLS, "ch-run", "ch-image", "ch-convert", "unsquashfs")
FOR_DOCKER = ("podman", "apptainer", "singularity", "docker", "charliecloud")
FOR_SINGULARITY = ("apptainer", "singularity", "podman", "charliecloud")
# They use the machine's own network, without port mapping
SHARES_PORTS = frozenset({"apptainer", "singularity", "charliecloud"})
DOCKER_TOOLS = "podman, apptainer, docker or charliecloud, and python3"
SHARED_FIELDS = ("command", "entrypoint", "environment", "network", "tasks", "each_node")
PORT_FIELDS = ("access", "internal", "external", "protocol", "path")
MOST_TASKS = 100_000


class DockerContainer(Kind):
    """The kind `docker-container`."""

    name = "docker-container"
    uri = f"{KINDS}/docker-container.yaml"
    in_container = True

    def check(self, executable: Executable, request: Request) -> Sequence[Reason]:
        """Return what is wrong with the image or ports.

        Privileged containers are refused, and one port at most is reachable.
        """
        fields = executable.fields
        reasons = f.unknown_fields(fields, ("image", "privileged", *SHARED_FIELDS))
        if fields.get("privileged"):
            message = "no container runs privileged here."
            reasons.append(f.not_supported("privileged", message, wanted=True, nearest="privileged: false"))
        return reasons + check_image(fields.get("image")) + check_run(fields, request)

    def ways(self, executable: Executable, tools: Mapping[str, str]) -> Sequence[Way]:
        """Return a way for each available tool."""
        image = executable.fields["image"]
        sources = [images.read_location(location, number) for number, location in enumerate(image["locations"])]
        ways = _ways(executable, tools, sources, image.get("digest") or "")
        return [*ways, *skaha.list_container_ways(executable, tools, image)]

    def list_needs(self, executable: Executable) -> Sequence[WayNeed]:
        """Return the needs of each container tool, and of Skaha."""
        locations = executable.fields["image"]["locations"]
        return [*list_tool_needs(executable), *skaha.list_container_needs(executable, locations)]

    def needs(self, executable: Executable) -> str:
        """Return that it needs a container tool."""
        if access_ports(executable.fields):
            return "podman or docker (whose ports can be reached)"
        return DOCKER_TOOLS

    def brings(self, executable: Executable) -> Sequence[Data]:
        """List the archives that have an address."""
        return images.to_bring(executable.fields["image"]["locations"])

    def archives(self, executable: Executable) -> Sequence[str]:
        """List the locations that are paths."""
        return images.list_archives(executable.fields["image"]["locations"])

    def fetches(self, executable: Executable) -> Sequence[Data]:
        """List the registry images."""
        image = executable.fields["image"]
        return images.to_fetch(image["locations"], image.get("digest") or "")


class SingularityContainer(Kind):
    """The kind `singularity-container`."""

    name = "singularity-container"
    uri = f"{KINDS}/singularity-container.yaml"
    in_container = True

    def check(self, executable: Executable, request: Request) -> Sequence[Reason]:
        """Return what is wrong with the image's location."""
        fields = executable.fields
        reasons = f.unknown_fields(fields, ("location", *SHARED_FIELDS))
        reasons += check_location("location", fields.get("location"), sif=True)
        return reasons + check_run(fields, request)

    def ways(self, executable: Executable, tools: Mapping[str, str]) -> Sequence[Way]:
        """Return ways by Apptainer, or by tools that can run the file system in the image."""
        return _ways(executable, tools, [images.read_location(str(executable.fields["location"]), 0, sif=True)], "")

    def list_needs(self, executable: Executable) -> Sequence[WayNeed]:
        """Return the needs of each container tool."""
        return list_tool_needs(executable)

    def needs(self, executable: Executable) -> str:
        """Return that it needs Apptainer, or tools that can unpack and run its images."""
        return "apptainer, or unsquashfs with podman or charliecloud, and python3"

    def brings(self, executable: Executable) -> Sequence[Data]:
        """List the image, if it has an address."""
        return images.to_bring([str(executable.fields["location"])], sif=True)

    def archives(self, executable: Executable) -> Sequence[str]:
        """List the image, if it is named by a path."""
        return images.list_archives([str(executable.fields["location"])], sif=True)

    def fetches(self, executable: Executable) -> Sequence[Data]:
        """List the registry image."""
        return images.to_fetch([str(executable.fields["location"])], sif=True)


def check_image(image: Any) -> list[Reason]:
    """Return what is wrong with the image's locations, digest or platform."""
    if not isinstance(image, Mapping):
        return [f.missing("image", "an image is needed.", nearest="image: {locations: [ghcr.io/owner/name:tag]}")]
    reasons = f.unknown_fields(image, ("locations", "digest", "platform"), "image.")
    locations = image.get("locations")
    if not isinstance(locations, Sequence) or isinstance(locations, str) or not locations:
        return [*reasons, f.missing("image.locations", "image.locations must be a list of at least one location.")]
    for number, location in enumerate(locations):
        reasons += check_location(f"image.locations[{number}]", location)
    digest = image.get("digest")
    if digest is not None and not (isinstance(digest, str) and DIGEST.match(digest)):
        message = "image.digest must be sha256: and 64 hexadecimal digits."
        reasons.append(f.invalid("image.digest", message, wanted=digest))
    return reasons + check_platform(image.get("platform") or {})


def check_platform(platform: Any) -> list[Reason]:
    """Return a reason unless the image is for Linux on amd64."""
    if not isinstance(platform, Mapping):
        return [f.invalid("image.platform", "image.platform must have architecture and os.", wanted=platform)]
    reasons = f.unknown_fields(platform, ("architecture", "os"), "image.platform.")
    for name, allowed in (("architecture", ARCHITECTURES), ("os", {"linux"})):
        if (value := platform.get(name)) is not None and (not isinstance(value, str) or value not in allowed):
            message = f"images for {quote_value(value)} can't be run here; only linux on amd64."
            nearest = "amd64" if name == "architecture" else "linux"
            reasons.append(f.not_supported(f"image.platform.{name}", message, wanted=value, nearest=nearest))
    return reasons


def check_location(field: str, location: Any, sif: bool = False) -> list[Reason]:
    """Return a reason if no tool can read the location."""
    if not isinstance(location, str) or not location.strip():
        return [f.missing(field, "the location of the image is needed.")]
    if images.read_location(location, 0, sif=sif)["how"] == "unknown":
        message = f"{location!r} is not a location of an image that can be read here."
        if location.lower().endswith((*images.SQUASHED, *images.TARS)):
            message = f"{location!r} is an image file, but not by its whole path, nor by an address."
        nearest = "https://host/tool.sif" if sif else "ghcr.io/owner/name:tag or docker-archive:/path.tar"
        return [f.invalid(field, message, wanted=location, nearest=nearest)]
    return []


def check_run(fields: Mapping[str, Any], request: Request) -> list[Reason]:
    """Return what is wrong with the command, environment, volumes, tasks or ports."""
    reasons = f.check_environment(fields.get("environment"))
    if fields.get("command") is not None:
        reasons += f.check_words("command", fields["command"], empty=True)
    entrypoint = fields.get("entrypoint")
    if entrypoint is not None:
        reasons += f.check_words("entrypoint", [entrypoint] if isinstance(entrypoint, str) else entrypoint)
    for volume in request.compute.volumes:
        if ":" in volume.path or "," in volume.path or ".." in volume.path.split("/") or volume.path == "/":
            message = f"a volume can't be mounted at {volume.path!r}."
            reasons.append(Reason(f.INVALID, "compute.volumes", message, wanted=volume.path, nearest="/input"))
    return reasons + check_tasks(fields) + check_network(fields.get("network"))


def check_tasks(fields: Mapping[str, Any]) -> list[Reason]:
    """Return what is wrong with the number of tasks (such as MPI ranks), or with one container per node."""
    tasks = fields.get("tasks")
    if wrong := f.check_each_node(fields):
        return wrong
    if fields.get("each_node") and (tasks is not None or access_ports(fields)):
        beside = "tasks" if tasks is not None else "network.ports"
        message = f"a container that is started on each node has no {beside}."
        return [f.not_supported("each_node", message, wanted=True, nearest=f"leave out each_node, or {beside}")]
    if tasks is None:
        return []
    if type(tasks) is not int or not 1 <= tasks <= MOST_TASKS:
        message = f"a container runs in 1 to {MOST_TASKS} tasks, not {quote_value(tasks)}."
        return [f.invalid("tasks", message, wanted=tasks, nearest="4")]
    if access_ports(fields):
        return [f.not_supported("tasks", "a container whose port is reached runs once, not in tasks.", wanted=tasks)]
    return []


def check_network(network: Any) -> list[Reason]:
    """Return what is wrong with the ports: one can be reached through the service, none is opened on the machine."""
    ports = (network.get("ports") or []) if isinstance(network, Mapping) else network or []
    reasons = f.unknown_fields(network, ("ports",), "network.") if isinstance(network, Mapping) else []
    if ports == []:
        return reasons
    listed = isinstance(network, Mapping) and isinstance(ports, Sequence)
    if not listed or not all(isinstance(port, Mapping) for port in ports):
        return [f.invalid("network.ports", "network.ports must be a list of ports.", wanted=network)]
    for number, port in enumerate(ports):
        field = f"network.ports[{number}]"
        reasons += f.unknown_fields(port, PORT_FIELDS, f"{field}.")
        if port.get("external"):
            message = "no port is opened to the outside; one with access: true is reached through the service."
            reasons.append(
                f.not_supported(f"{field}.external", message, wanted=port["external"], nearest="access: true")
            )
        internal = port.get("internal")
        if isinstance(internal, Mapping):
            reasons += f.unknown_fields(internal, ("port",), f"{field}.internal.")
        inner = internal.get("port") if isinstance(internal, Mapping) else internal
        if not isinstance(internal, Mapping) or not isinstance(inner, int) or not 0 < inner < 65536:
            reasons.append(f.invalid(f"{field}.internal.port", "a port is a number from 1 to 65535.", wanted=inner))
        if not isinstance(port.get("path") or "/", str):
            reasons.append(f.invalid(f"{field}.path", "a path is text.", wanted=port["path"], nearest="/"))
        if port.get("access") and str(port.get("protocol") or "HTTP").upper() not in ("HTTP", "TCP"):
            message = f"{port['protocol']} can't be reached through the service; HTTP can."
            reasons.append(f.not_supported(f"{field}.protocol", message, wanted=port["protocol"], nearest="HTTP"))
    if len(access_ports({"network": network})) > 1:
        reasons.append(
            f.not_supported("network.ports", "only one port can be reached.", nearest="one with access: true")
        )
    return reasons


def access_ports(fields: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the ports that are to be reached."""
    return [port for port in (fields.get("network") or {}).get("ports") or [] if port.get("access")]


def tools_for(sources: Sequence[Mapping[str, str]], tools: Mapping[str, str]) -> list[str]:
    """Return the available container tools that can run an image from these sources, best first."""
    forms = {source["how"] for source in sources}
    order: Sequence[str] = FOR_SINGULARITY if forms <= {"sif", "library"} else FOR_DOCKER
    if forms == {"library"} or (forms == {"sif"} and "unsquashfs" not in tools):
        order = ("apptainer", "singularity")
    there = [tool for tool in order if all(part in tools for part in ("python3", *TOOLS[tool][0]))]
    if "apptainer" in there and "singularity" in there:
        there.remove("singularity")  # the same program under its old name
    return [tool for tool in there if not (tool == "docker" and forms <= {"sif", "directory"})]


def _ways(
    executable: Executable, tools: Mapping[str, str], sources: Sequence[Mapping[str, str]], digest: str
) -> list[Way]:
    reached = bool(access_ports(executable.fields))
    by_tool = [
        Way(
            tool,
            contained=TOOLS[tool][1] and not any(images.is_ours(source) for source in sources),
            program=_program_of(executable, tool, sources, digest),
            interactive=reached,
        )
        for tool in tools_for(sources, tools)
        if not (reached and tool in SHARES_PORTS)
    ]
    return by_tool + find_pod_ways(executable, tools, sources, digest)


def list_tool_needs(executable: Executable) -> list[WayNeed]:
    """List the container tools, and the programs that each needs."""
    reached = "its port is to be reached, and this tool shares the machine's" if access_ports(executable.fields) else ""
    needs = [
        WayNeed(tool, ("python3", *parts), reached if tool in SHARES_PORTS else "")
        for tool, (parts, _) in TOOLS.items()
        if tool != "singularity"
    ]
    plain = "a pod is an image of a registry, once, without a port to be reached"
    return [*needs, WayNeed(KUBERNETES, (KUBERNETES,), plain)]


def _program_of(
    executable: Executable, tool: str, sources: Sequence[Mapping[str, str]], digest: str
) -> Callable[[Setting], Program]:
    return partial(program, executable, tool, sources, digest)


def image_plan(tool: str, sources: Sequence[Mapping[str, str]], digest: str, setting: Setting) -> dict[str, Any]:
    """Return the runner's plan for an image and where it runs, whatever is run in it."""
    return {
        "tool": tool,
        "paths": {name: setting.tool(name) for name in setting.tools if name in CALLED},
        "name": f"sublet-{setting.directory.rstrip('/').rpartition('/')[2]}",
        "sources": [images.place_source(source, setting) for source in sources],
        "digest": digest,
        "work": setting.work,
        "image": f"{setting.directory}/image",
        "unstarted": f"{setting.directory}/unstarted",  # why nothing was run, for the session's end
        "private": f"{setting.directory}/container",  # outside the working directory, which the container can change
        "base_url": setting.base_url,
        **sizes_of(setting.amounts.shape),
        "network": setting.network,
        "places": [[place.path, place.target, place.read_only] for place in setting.places],
    }


def tell_places(setting: Setting) -> dict[str, str]:
    """Return variables that say where the container sees each place."""
    return {variable_of(place.name): place.target for place in setting.places}


def program(
    executable: Executable, tool: str, sources: Sequence[Mapping[str, str]], digest: str, setting: Setting
) -> Program:
    """Build the runner and its plan."""
    fields = executable.fields
    entrypoint = fields.get("entrypoint")
    ports = access_ports(fields)
    nodes, is_on_each = setting.amounts.nodes, bool(fields.get("each_node"))
    plan = image_plan(tool, sources, digest, setting) | {
        "entrypoint": [entrypoint] if isinstance(entrypoint, str) else entrypoint,
        "command": list(fields.get("command") or ()),
        "in_work": setting.has_files and bool(fields.get("command")),  # the command may name those files
        "environment": f.tell_only_node(fields, nodes) | f.environment_of(fields) | tell_places(setting),
        "mounts": [[f"{setting.directory}/{m.source}", m.target, m.read_only] for m in setting.mounts],
        "port": ports[0]["internal"]["port"] if ports else 0,
        "path": ports[0].get("path") or "/" if ports else "/",
        "tasks": fields.get("tasks") or (nodes if is_on_each and nodes > 1 else 0),
        "each_node": is_on_each,
        "program": PROGRAM,
        "mpi": f.environment_of(fields).get("SLURM_MPI_TYPE", ""),
    }
    travels = {PROGRAM: pack("container_job", *PARTS), ".sublet/container.json": json.dumps(plan).encode()}
    environment = {"SUBLET_SECRET": setting.secret} if ports else {}
    connects = "uri:http" if ports else ""
    return Program((setting.tool("python3"), PROGRAM), environment, travels, tools=(tool,), connects=connects)


DOCKER = DockerContainer()
SINGULARITY = SingularityContainer()
