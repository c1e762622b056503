"""A desktop in an image out of Debian's packages, by container tools that pass on no port: reached by a socket."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real import images
from tests.real.jupyter_image import libraries_of
from tests.real.programs import Place
from tests.real.test_kinds_web import BASE, SECRET, get, need_desktop, speak_vnc, started

pytestmark = pytest.mark.engines
PROGRAMS = ("Xtigervnc", "xkbcomp", "xterm")
FOLDERS = ("/usr/share/X11/xkb", "/usr/share/novnc", "/usr/share/X11/app-defaults")
APPLETS = ("cp", "rm", "kill")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image, as `docker save` writes it."""
    need_desktop()
    path = tmp_path_factory.mktemp("image") / "desktop.tar"
    images.docker_archive(path, images.layer(more=dict(_files())), Entrypoint=[], Env=["PATH=/usr/bin:/bin"])
    return path


def _files() -> Iterator[tuple[str, Path | bytes]]:
    programs = [Path(f"/usr/bin/{name}") for name in PROGRAMS]
    yield from ((str(program), program.resolve()) for program in programs)
    yield from ((str(library), library) for library in libraries_of(programs))
    for folder in FOLDERS:
        yield from ((str(file), file.resolve()) for file in Path(folder).rglob("*") if file.is_file())
    yield from ((f"/bin/{name}", f'#!/bin/sh\nexec /bin/busybox {name} "$@"\n'.encode()) for name in APPLETS)


@pytest.mark.parametrize(("tool", "program"), [("podman", "podman"), ("charliecloud", "ch-run")])
def test_a_desktop_from_an_image_is_reached_by_its_socket(
    tmp_path: Path, archive: Path, tool: str, program: str
) -> None:
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{tool} is not installed")
    fields = {"interface": "desktop", "image": {"locations": [f"docker-archive:{archive}"]}}
    fields["environment"] = {"SUBLET_GEOMETRY": "640x480"}
    with started(Place(tmp_path), fields, {program: path}) as (port, process):
        assert process.poll() is None, process.communicate()
        assert get(port, f"{BASE}vnc.html")[0] == 403
        assert b"noVNC" in get(port, f"{BASE}vnc.html", SECRET)[2]
        assert speak_vnc(port, additional_headers=SECRET) == (640, 480)
