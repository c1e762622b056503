"""Web applications that interactive sessions run: one row says how each is started, and how it is reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sublet.booking.model.request import Executable

WEB = "web"  # an application of one's own: the request says its words
RECIPE = "recipe"  # one of the operator's; the service says it, and no document
Serves = Literal["port", "socket", "vnc"]


@dataclass(frozen=True)
class Recipe:
    """How one web application is started, and how it is reached.

    In its words `{port}`, `{socket}`, `{host}` and `{base_url}` are filled in where it runs; the same are in its
    environment: SUBLET_PORT, SUBLET_SOCKET, SUBLET_HOST and SUBLET_BASE_URL.
    """

    name: str
    title: str  # as people read it
    run: tuple[str, ...] = ()
    script: str = ""  # a shell script of ours that starts it, instead of words
    programs: tuple[str, ...] = ()  # one of these must be on a machine that runs it without an image
    serves: Serves = "port"  # HTTP on a TCP port or on a Unix socket; or VNC on a Unix socket, shown by noVNC
    port: int = 0  # it listens on this one, whatever we say; 0: on the one that it is told
    path: str = "/"  # where visitors are led first
    keeps_path: bool = False  # it wants to see the path of the session before its own

    @property
    def connects(self) -> str:
        """The kind of its connector."""
        return f"uri:{self.name}"


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "desktop",
            "A desktop",
            script="desktop",
            programs=("Xvnc", "Xtigervnc"),
            serves="vnc",
            path="vnc.html?autoconnect=true&reconnect=true&resize=remote&path={base_url}websockify",
        ),
        Recipe("code", "VS Code", script="code", programs=("code-server", "openvscode-server"), serves="socket"),
        Recipe("rstudio", "RStudio", script="rstudio", programs=("rserver",), serves="socket"),
    )
}


def find_recipe(executable: Executable) -> Recipe | None:
    """The recipe of an interactive session; None: it is JupyterLab, a shell, or nothing that there is."""
    given = executable.fields
    interface = str(given.get("interface", "lab"))
    if isinstance(own := given.get(RECIPE), Mapping):
        return read_recipe(interface, own)
    if interface == WEB:
        return Recipe(
            WEB,
            "A web application",
            run=tuple(given.get("command") or ()),
            port=given.get("port") or 0,
            path=given.get("path") or "/",
            keeps_path=bool(given.get("keeps_path")),
        )
    return RECIPES.get(interface)


def read_recipe(name: str, given: Mapping[str, Any]) -> Recipe:
    """A recipe of the settings, as the service puts it into a request."""
    return Recipe(
        name,
        given.get("title") or name,
        run=tuple(given.get("run") or ()),
        programs=tuple(given.get("programs") or ()),
        **{key: given[key] for key in ("serves", "port", "path", "keeps_path") if key in given},
    )
