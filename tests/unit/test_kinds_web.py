"""Rules of web applications: which ways there are, what is refused, and where secrets are not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sublet.booking.documents.short import full_document
from sublet.booking.model.request import Executable
from sublet.kernel.errors import BadRequest
from sublet.kinds.interactive import INTERACTIVE
from sublet.kinds.recipes import RECIPES
from sublet.kinds.web import make_cookies
from tests.unit.test_kinds import refusals, setting

IMAGE = {"locations": ["ghcr.io/owner/desk:1"]}
TOOLS = ("python3", "podman", "apptainer", "ch-run", "docker", "Xvnc", "code-server", "rserver")
SOCKET_TOOLS = [("podman", True), ("apptainer", True), ("docker", True), ("charliecloud", False)]


def interactive(**fields: Any) -> Executable:
    return Executable("interactive", fields=fields)


def names(executable: Executable, *tools: str) -> list[tuple[str, bool]]:
    return [(way.name, way.contained) for way in INTERACTIVE.ways(executable, dict.fromkeys(tools, ""))]


@pytest.mark.parametrize(
    ("interface", "program"), [("desktop", "Xvnc"), ("code", "code-server"), ("rstudio", "rserver")]
)
def test_a_recipe_runs_where_its_program_is_and_in_images_by_every_container_tool(interface: str, program: str) -> None:
    plain = interactive(interface=interface)
    assert names(plain, "python3", "podman") == []
    assert names(plain, "python3", program) == [(program, False)]
    assert names(interactive(interface=interface, standard_image=IMAGE), *TOOLS) == [(program, False), *SOCKET_TOOLS]
    assert names(interactive(interface=interface, image=IMAGE), *TOOLS) == SOCKET_TOOLS
    assert refusals(plain) == []
    assert program in INTERACTIVE.needs(plain)


def test_what_listens_on_a_port_runs_in_images_only_where_ports_can_be_passed_on() -> None:
    web = {"interface": "web", "command": ["streamlit", "run", "app.py", "--server.port", "{port}"]}
    assert names(interactive(**web), *TOOLS) == [("web", False)]
    assert names(interactive(**web, image=IMAGE), *TOOLS) == [("podman", True), ("docker", True)]


def test_an_operators_recipe_is_run_as_the_settings_say() -> None:
    recipe = {"run": ["panel", "serve", "--port", "{port}", "--prefix", "{base_url}"], "keeps_path": True, "port": 0}
    executable = interactive(interface="panel", recipe=recipe, standard_image=IMAGE)
    assert refusals(executable) == []
    (way, _) = INTERACTIVE.ways(executable, dict.fromkeys(TOOLS, ""))
    made = way.program(setting(secret="the-secret", base_url="/connect/x/"))
    plan = json.loads(made.files[".sublet/container.json"])
    assert (plan["entrypoint"], plan["command"][-3:]) == (["panel"], ["8080", "--prefix", "/connect/x/"])
    assert (plan["port"], plan["keeps_path"], made.connects) == (8080, True, "uri:panel")


@pytest.mark.parametrize("interface", RECIPES)
@pytest.mark.parametrize("image", [None, IMAGE])
def test_the_secret_is_in_the_environment_of_the_door_alone(interface: str, image: Any) -> None:
    executable = interactive(interface=interface, **({"image": image} if image else {}))
    way = INTERACTIVE.ways(executable, dict.fromkeys(TOOLS, ""))[0]
    made = way.program(setting(secret="the-secret", base_url="/connect/x/"))
    assert way.interactive
    assert made.environment["SUBLET_SECRET"] == "the-secret"
    assert not any("the-secret" in word for word in made.argv)
    assert not any(b"the-secret" in content for content in made.files.values())
    if image:
        assert json.loads(made.files[".sublet/container.json"])["socket"] == ".sublet/app.sock"


def test_every_way_of_a_recipe_is_explained_and_what_it_needs_is_enough() -> None:
    for executable in (
        *(interactive(interface=name, standard_image=IMAGE) for name in RECIPES),
        interactive(interface="web", command=["a"], standard_image=IMAGE),
    ):
        for need in INTERACTIVE.list_needs(executable):
            assert not need.lacks or need.name == "kubernetes"  # which says where it would look for the image
            assert need.name in [name for name, _ in names(executable, *need.tools)]


def test_what_can_not_be_opened_is_refused_by_the_field() -> None:
    assert refusals(interactive(interface="web")) == ["executable.command"]
    assert refusals(interactive(interface="web", image=IMAGE)) == []
    assert refusals(interactive(interface="web", command=["a"], port=70000)) == ["executable.port"]
    assert refusals(interactive(interface="web", command=["a"], path=3)) == ["executable.path"]
    assert refusals(interactive(interface="desktop", idle="for long")) == ["executable.idle"]
    assert refusals(interactive(interface="desktop", idle="PT30M")) == []


def test_the_short_form_has_web_and_idle() -> None:
    executable = full_document({"web": 8501, "run": "streamlit run app.py", "idle": "30m"})["executable"]
    assert executable["interface"] == "web"
    assert executable["command"] == ["streamlit", "run", "app.py"]
    assert (executable["port"], executable["idle"]) == (8501, "30m")
    told = full_document({"web": "auto", "run": ["serve", "{port}"], "image": "ghcr.io/owner/app:1"})["executable"]
    assert "port" not in told
    assert told["image"] == {"locations": ["ghcr.io/owner/app:1"]}
    assert full_document({"web": 1, "run": "a"})["executable"]["port"] == 1
    for wrong in ({"web": "http", "run": "a"}, {"web": 0, "run": "a"}, {"run": "a", "idle": "1h"}):
        with pytest.raises(BadRequest):
            full_document(wrong)


def test_the_cookie_of_a_desktop_counts_for_every_display_and_does_not_show_the_secret() -> None:
    written = make_cookies("the-secret")
    assert written.startswith(b"\xff\xff\0\0\0\0\0\x12MIT-MAGIC-COOKIE-1\0\x10")
    assert len(written) == 2 + 2 + 2 + 2 + 18 + 2 + 16
    assert b"the-secret" not in written
