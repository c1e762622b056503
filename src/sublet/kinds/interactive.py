"""The kind `interactive`: JupyterLab, a shell, or a web application by its recipe, each with its own secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from sublet.booking.model.amounts import parse_duration
from sublet.booking.model.job import Program
from sublet.booking.model.kernels import HUB, SKAHA
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data, Executable, Request
from sublet.kernel.errors import BadAmount
from sublet.kinds import fields as f
from sublet.kinds import in_image, skaha, web
from sublet.kinds.pod_images import KUBERNETES
from sublet.kinds.port import Kind, Setting, Way, WayNeed
from sublet.kinds.recipes import RECIPE, RECIPES, WEB, find_recipe
from sublet.kinds.travel import PROGRAM, pack

INTERFACES = ("lab", "shell", *RECIPES, WEB)
FIELDS = ("interface", "environment", "idle", in_image.IMAGE, in_image.STANDARD, RECIPE)
LAB_SETTINGS = ".sublet/jupyter_server_config.py"

# Read by Jupyter in the job: port and secret come from the environment, never from the command line.
LAB = """import os

c = get_config()  # noqa
c.ServerApp.ip = os.environ.get("SUBLET_HOST", "127.0.0.1")
c.ServerApp.port = int(os.environ["SUBLET_PORT"])
c.ServerApp.port_retries = 0
c.ServerApp.base_url = os.environ["SUBLET_BASE_URL"]
c.IdentityProvider.token = os.environ.pop("SUBLET_SECRET")
c.ServerApp.root_dir = os.getcwd()
c.ServerApp.open_browser = False
c.ServerApp.allow_root = True
c.ServerApp.allow_remote_access = True
c.ServerApp.terminals_enabled = True
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
c.LabApp.news_url = None
"""

HUB_SERVER = Program((HUB,), connects="uri:jupyter-lab")


class Interactive(Kind):
    """The kind `interactive`."""

    name = "interactive"
    uri = "urn:sublet:kind:executable:interactive"
    extra = "notebook"

    def check(self, executable: Executable, request: Request) -> Sequence[Reason]:
        """Return what is wrong with the interface, image or other fields."""
        fields = executable.fields
        interface = fields.get("interface", "lab")
        known = (*FIELDS, *web.WEB_FIELDS) if interface == WEB else FIELDS
        reasons = f.unknown_fields(fields, known) + f.check_environment(fields.get("environment"))
        reasons += f.check_local_volumes(request, "an interactive session") + in_image.check_image(fields)
        reasons += _check_idle(fields.get("idle"))
        if interface not in INTERFACES and not fields.get(RECIPE):
            message = f"there is no interface {interface}; there are {', '.join(INTERFACES)}."
            reasons.append(f.invalid("interface", message, wanted=interface, nearest="lab"))
        elif interface == WEB:
            reasons += web.check_web(fields)
        elif interface == "shell" and fields.get(in_image.IMAGE):
            message = "a shell runs in no image; JupyterLab does, and has terminals."
            reasons.append(f.not_supported("image", message, nearest="interface: lab"))
        return reasons

    def ways(self, executable: Executable, tools: Mapping[str, str]) -> Sequence[Way]:
        """Return ways for JupyterLab (here or on a hub), a web application, or a small server with a shell."""
        if recipe := find_recipe(executable):
            return web.list_ways(executable, recipe, tools)
        environment = f.environment_of(executable.fields)
        if executable.fields.get("interface", "lab") == "lab":
            own = [] if executable.fields.get(in_image.IMAGE) else _list_lab_ways(environment, tools)
            make = partial(in_image.make_lab, executable.fields, LAB, LAB_SETTINGS)
            as_it_is = partial(lab, environment)
            ways = in_image.list_ways(executable, tools, make, as_it_is, connects="uri:jupyter-lab")
            return [*own, *ways, *skaha.list_lab_ways(executable, tools, *_find_named(executable))]
        if "python3" not in tools:
            return []
        return [Way("shell", False, lambda setting: shell(environment, setting), interactive=True)]

    def list_needs(self, executable: Executable) -> Sequence[WayNeed]:
        """Return the needs of JupyterLab (on the machine, on a hub, or in an image), a web application, or a shell."""
        if recipe := find_recipe(executable):
            return web.list_needs(executable, recipe)
        fields = executable.fields
        if fields.get("interface", "lab") != "lab":
            return [WayNeed("shell", ("python3",))]
        lacks = "an image was named, and it runs in that only" if fields.get(in_image.IMAGE) else ""
        hub = lacks or ("a hub's servers take no environment" if fields.get("environment") else "")
        own = [WayNeed("jupyter-lab", ("jupyter-lab",), lacks), WayNeed(HUB, (HUB,), hub)]
        there = WayNeed(SKAHA, (SKAHA,), skaha.find_lab_lack(executable, _find_named(executable)[0]))
        return [*own, *in_image.list_needs(executable, is_reached=True), there]

    def needs(self, executable: Executable) -> str:
        """Return that it needs JupyterLab, another web application, or Python."""
        if recipe := find_recipe(executable):
            return web.describe_needs(executable, recipe)
        if executable.fields.get("interface", "lab") != "lab":
            return "python3, and permission to run outside a container"
        if executable.fields.get(in_image.IMAGE):
            return "Kubernetes, or podman or docker (whose ports can be reached)"
        return "jupyter-lab, a JupyterHub, or Kubernetes, podman or docker with an image"

    def brings(self, executable: Executable) -> Sequence[Data]:
        """List an image that has an address."""
        return in_image.to_bring(executable.fields)

    def archives(self, executable: Executable) -> Sequence[str]:
        """List the image, if it is named by a path."""
        return in_image.list_archives(executable.fields)

    def fetches(self, executable: Executable) -> Sequence[Data]:
        """List the registry image."""
        return in_image.to_fetch(executable.fields)

    def fetches_for(self, executable: Executable, way: str) -> Sequence[Data]:
        """List the registry image for container tools only: other ways don't use the operator's default image."""
        return in_image.to_fetch_for(executable.fields, way)


def _check_idle(idle: object) -> list[Reason]:
    try:
        if idle is not None:
            parse_duration(str(idle))
    except BadAmount as error:
        return [f.invalid("idle", error.sentences, wanted=idle, nearest="30m")]
    return []


def _list_lab_ways(environment: Mapping[str, str], tools: Mapping[str, str]) -> list[Way]:
    ways = []
    if "jupyter-lab" in tools:
        is_pod = KUBERNETES in tools
        ways.append(Way("jupyter-lab", is_pod, lambda setting: lab(environment, setting), interactive=True))
    if HUB in tools and not environment:  # a hub's servers have their own environment
        is_contained = "contained-servers" in tools
        ways.append(Way(HUB, is_contained, lambda setting: HUB_SERVER, interactive=True))
    return ways


def _find_named(executable: Executable) -> tuple[list[str], str]:
    """Return the requested image; the operator's default is for their own containers only."""
    named = executable.fields.get(in_image.IMAGE)
    return in_image.find_image({in_image.IMAGE: named}) if named else ([], "")


def _own(setting: Setting) -> dict[str, str]:
    return {"SUBLET_SECRET": setting.secret, "SUBLET_BASE_URL": setting.base_url}


def lab(environment: Mapping[str, str], setting: Setting) -> Program:
    """Run JupyterLab in the working directory; its own files stay in the session."""
    own = {f"JUPYTER_{name}_DIR": f"{setting.work}/.sublet/jupyter/{name.lower()}" for name in ("RUNTIME", "CONFIG")}
    argv = (setting.tool("jupyter-lab"), f"--config={LAB_SETTINGS}")
    files = {LAB_SETTINGS: LAB.encode()}
    return Program(argv, {**environment, **own, **_own(setting)}, files, connects="uri:jupyter-lab")


def shell(environment: Mapping[str, str], setting: Setting) -> Program:
    """Run the person's shell in the working directory, behind a small server."""
    parts = ("kinds/inside/gate.py", "kinds/inside/websocket.py", "kinds/inside/shell_page.html")
    argv = (setting.tool("python3"), PROGRAM)
    files = {PROGRAM: pack("shell_server", *parts)}
    return Program(argv, {**environment, **_own(setting)}, files, connects="uri:shell")


INTERACTIVE = Interactive()
