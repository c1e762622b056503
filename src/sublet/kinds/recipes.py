"""Recipes of web applications for interactive sessions: how each is started and reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sublet.booking.model.request import Executable

WEB = "web"  # a custom application: the request gives its command
RECIPE = "recipe"  # the operator's; set by the service, never by a document
Serves = Literal["port", "socket", "vnc"]


@dataclass(frozen=True)
class Recipe:
    """How a web application is started and reached.

    In its words `{port}`, `{socket}`, `{host}` and `{base_url}` are substituted where it runs; its environment has the
    same: SUBLET_PORT, SUBLET_SOCKET, SUBLET_HOST and SUBLET_BASE_URL.
    """

    name: str
    title: str  # its name for people
    run: tuple[str, ...] = ()
    script: str = ""  # a shell script of Sublet's that starts it, instead of words
    programs: tuple[str, ...] = ()  # one of these must be on a machine that runs it without an image
    serves: Serves = "port"  # HTTP on a TCP port or Unix socket, or VNC on a Unix socket, shown by noVNC
    port: int = 0  # the fixed port that it listens on; 0: the one that it is given
    path: str = "/"  # the page that visitors are sent to first
    keeps_path: bool = False  # its requests must keep the session's path prefix

    @property
    def connects(self) -> str:
        """The type of its connector."""
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
    """Return the recipe of an interactive session; None for JupyterLab, a shell, or an unknown interface."""
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
    """Read a recipe of the settings, as the service puts it into a request."""
    return Recipe(
        name,
        given.get("title") or name,
        run=tuple(given.get("run") or ()),
        programs=tuple(given.get("programs") or ()),
        **{key: given[key] for key in ("serves", "port", "path", "keeps_path") if key in given},
    )
