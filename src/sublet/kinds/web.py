"""Web applications by their recipes, on the machine or in an image, always behind the session's own secret."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

from sublet.booking.model.job import Program
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Executable
from sublet.kinds import fields as f
from sublet.kinds import in_image
from sublet.kinds.pod_images import KUBERNETES
from sublet.kinds.port import Setting, Way, WayNeed
from sublet.kinds.recipes import WEB, Recipe
from sublet.kinds.travel import PROGRAM, pack

PLAN = ".sublet/web.json"
SCRIPT = ".sublet/start.sh"
SOCKET = ".sublet/app.sock"  # relative, as the path of a Unix socket has 107 bytes at most
COOKIES = ".sublet/Xauthority"
INNER_PORT = 8080  # in a container, where it is always free
PARTS = tuple(f"kinds/inside/{name}.py" for name in ("gate", "desktop_server", "listening", "websocket"))
WEB_FIELDS = ("command", "port", "path", "keeps_path")
ANY_FAMILY = 0xFFFF  # of an X cookie: valid for every display, however it is reached


def check_web(given: Mapping[str, Any]) -> list[Reason]:
    """Return what is wrong with a custom web application; an image may have its own command."""
    reasons = f.check_words("command", given.get("command") or [], empty=bool(given.get(in_image.IMAGE)))
    port = given.get("port")
    if port is not None and (type(port) is not int or not 0 < port < 65536):
        message = "a port is a number from 1 to 65535; without one, {port} in the command is replaced by a free one."
        reasons.append(f.invalid("port", message, wanted=port, nearest="8080"))
    if not isinstance(given.get("path") or "/", str):
        reasons.append(f.invalid("path", "a path is text.", wanted=given["path"], nearest="/"))
    return reasons


def list_ways(executable: Executable, recipe: Recipe, tools: Mapping[str, str]) -> list[Way]:
    """Return ways on the machine if it has the program, and in an image by each container tool."""
    own: list[Way] = []
    if "python3" in tools and not executable.fields.get(in_image.IMAGE):
        names = [name for name in recipe.programs if name in tools] or ([WEB] if recipe.name == WEB else [])
        is_pod = KUBERNETES in tools
        own = (
            [Way(names[0], is_pod, partial(make_here, executable, recipe, names[0]), interactive=True)] if names else []
        )
    make = partial(make_inside, executable.fields, recipe)
    as_it_is = partial(make_here, executable, recipe, "") if _find_words(recipe) else None
    by_port = _has_port(recipe)
    return [*own, *in_image.list_ways(executable, tools, make, as_it_is, connects=recipe.connects, by_port=by_port)]


def list_needs(executable: Executable, recipe: Recipe) -> list[WayNeed]:
    """List the ways to run the application, on any platform."""
    lacks = "an image was named, and it runs in that only" if executable.fields.get(in_image.IMAGE) else ""
    own = [WayNeed(name, ("python3", name), lacks) for name in recipe.programs]
    if recipe.name == WEB:
        own = [WayNeed(WEB, ("python3",), lacks)]
    return [*own, *in_image.list_needs(executable, is_reached=_has_port(recipe))]


def describe_needs(executable: Executable, recipe: Recipe) -> str:
    """Describe what a platform needs."""
    tools = "podman or docker" if _has_port(recipe) else "podman, apptainer, docker or charliecloud"
    if executable.fields.get(in_image.IMAGE):
        return tools
    own = " or ".join(recipe.programs) if recipe.programs else "python3 outside a container"
    return f"{own}, or {tools} with an image"


def make_here(executable: Executable, recipe: Recipe, program: str, setting: Setting) -> Program:
    """Build the application on the machine, behind a gate that asks for the secret.

    `program` is the one of its programs that the machine has.
    """
    plan = {
        "run": _find_words(recipe),
        "serves": recipe.serves,
        "socket": SOCKET,
        "port": recipe.port,
        "path": _fill_in(recipe.path, {"base_url": setting.base_url.lstrip("/")}),
        "keeps_path": recipe.keeps_path,
        "unstarted": f"{setting.directory}/unstarted",
    }
    own = {"SUBLET_SECRET": setting.secret, "SUBLET_BASE_URL": setting.base_url}
    travels = {PROGRAM: pack("web_server", *PARTS), PLAN: json.dumps(plan).encode(), **_list_files(recipe, setting)}
    known = {"SUBLET_PROGRAM": setting.tool(program)} if program in recipe.programs else {}
    environment = f.environment_of(executable.fields) | own | known
    tools = (program,) if known else ()
    return Program((setting.tool("python3"), PROGRAM), environment, travels, tools=tools, connects=recipe.connects)


def make_inside(given: Mapping[str, Any], recipe: Recipe, setting: Setting) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Build what runs in the image; the gate and the secret stay outside."""
    port = recipe.port or INNER_PORT
    inner = {
        "base_url": setting.base_url,
        "host": "0.0.0.0",  # noqa: S104 - inside the container; requests reach it only through the gate
        "port": str(port),
        "socket": f"{in_image.WORK}/{SOCKET}",
    }
    words = [_fill_in(word, inner) for word in _find_words(recipe)]
    environment = {f"SUBLET_{name.upper()}": value for name, value in inner.items()}
    plan: dict[str, Any] = {
        "entrypoint": words[:1] or None,  # None: the image's own, in its own directory
        "command": words[1:],
        "start": in_image.WORK if words else "",
        "environment": f.environment_of(given) | environment,
        "path": _fill_in(recipe.path, {"base_url": setting.base_url.lstrip("/")}),
        "keeps_path": recipe.keeps_path,
        **({"port": port} if _has_port(recipe) else {"socket": SOCKET, "serves": recipe.serves}),
    }
    return plan, _list_files(recipe, setting)


def _has_port(recipe: Recipe) -> bool:
    return recipe.serves == "port"


def _find_words(recipe: Recipe) -> Sequence[str]:
    return ["/bin/sh", SCRIPT] if recipe.script else list(recipe.run)


def _list_files(recipe: Recipe, setting: Setting) -> dict[str, bytes]:
    """Return the files that travel with the application."""
    if not recipe.script:
        return {}
    source = files("sublet.kinds.inside").joinpath(f"{recipe.script}.sh").read_bytes()
    return {SCRIPT: source} | ({COOKIES: make_cookies(setting.secret)} if recipe.serves == "vnc" else {})


def make_cookies(secret: str) -> bytes:
    """Return an Xauthority file (see Xau(3)) that admits only this session's programs."""
    cookie = hashlib.sha256(f"x11 {secret}".encode()).digest()[:16]
    parts = (b"", b"", b"MIT-MAGIC-COOKIE-1", cookie)  # any host, any display
    return struct.pack("!H", ANY_FAMILY) + b"".join(struct.pack("!H", len(part)) + part for part in parts)


def _fill_in(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word
