"""An interactive session: JupyterLab, or a shell, with a secret of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sublet.booking.model.job import Program
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Executable, Request
from sublet.kinds import fields as f
from sublet.kinds.port import Kind, Setting, Way
from sublet.kinds.travel import PROGRAM, pack

INTERFACES = ("lab", "shell")
FIELDS = ("interface", "environment")
LAB_SETTINGS = ".sublet/jupyter_server_config.py"

# Read by Jupyter inside the job: the port and the secret are in the environment, never among the words of a command.
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


class Interactive(Kind):
    """The kind `interactive`."""

    name = "interactive"
    uri = "urn:sublet:kind:executable:interactive"
    outside, extra = True, "notebook"

    def check(self, executable: Executable, request: Request) -> Sequence[Reason]:
        """An interface that there is."""
        fields = executable.fields
        reasons = f.unknown_fields(fields, FIELDS) + f.check_environment(fields.get("environment"))
        reasons += f.check_local_volumes(request, "an interactive session")
        interface = fields.get("interface", "lab")
        if interface not in INTERFACES:
            message = f"there is no interface {interface}; there are lab and shell."
            reasons.append(f.invalid("interface", message, wanted=interface, nearest="lab"))
        return reasons

    def ways(self, executable: Executable, tools: Mapping[str, str]) -> Sequence[Way]:
        """JupyterLab, or a small server with a shell."""
        environment = f.environment_of(executable.fields)
        if executable.fields.get("interface", "lab") == "lab":
            if "jupyter-lab" not in tools:
                return []
            return [Way("jupyter-lab", False, lambda setting: lab(environment, setting), interactive=True)]
        if "python3" not in tools:
            return []
        return [Way("shell", False, lambda setting: shell(environment, setting), interactive=True)]

    def needs(self, executable: Executable) -> str:
        """JupyterLab, or Python."""
        return "jupyter-lab" if executable.fields.get("interface", "lab") == "lab" else "python3"


def _own(setting: Setting) -> dict[str, str]:
    return {"SUBLET_SECRET": setting.secret, "SUBLET_BASE_URL": setting.base_url}


def lab(environment: Mapping[str, str], setting: Setting) -> Program:
    """JupyterLab in the working directory; what it writes of its own stays in the session."""
    own = {f"JUPYTER_{name}_DIR": f"{setting.work}/.sublet/jupyter/{name.lower()}" for name in ("RUNTIME", "CONFIG")}
    argv = (setting.tool("jupyter-lab"), f"--config={LAB_SETTINGS}")
    files = {LAB_SETTINGS: LAB.encode()}
    return Program(argv, {**environment, **own, **_own(setting)}, files, connects="uri:jupyter-lab")


def shell(environment: Mapping[str, str], setting: Setting) -> Program:
    """The person's shell in the working directory, behind a small server."""
    parts = ("kinds/inside/gate.py", "kinds/inside/shell_page.html")
    argv = (setting.tool("python3"), PROGRAM)
    files = {PROGRAM: pack("shell_server", *parts)}
    return Program(argv, {**environment, **_own(setting)}, files, connects="uri:shell")


INTERACTIVE = Interactive()
