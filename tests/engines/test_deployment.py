"""The container image is built and started, and the unit is installed and run by a real systemd."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.boxes import have_box
from tests.engines.image_store import ImageStore, build_wheel, have_wheels, open_store
from tests.serving import eventually

pytestmark = pytest.mark.engines
ROOT = Path(__file__).parents[2]
PACKAGES = ("python3-venv", "ca-certificates", "systemd", "dbus")  # systemd is for the unit; a service needs none
BASE, IMAGE = "localhost/base", "localhost/sublet"
SETTINGS = 'url = "https://broker.cam.example.org"\n[platforms]\n'
LOOK = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:8080/health', timeout=5).read().decode())"
SOON = 120.0
OPERATOR = "anna@example.org"
UNIT = "/etc/systemd/system/sublet.service"
INSTALL = f"""
set -e
mkdir -p /etc/sublet && cat >/etc/sublet/sublet.toml <<'END'
{SETTINGS}END
as="setpriv --reuid sublet --regid sublet --clear-groups"
$as sublet serve --print-unit --gateway --port 8080 --config /etc/sublet/sublet.toml >{UNIT}
systemd-analyze verify {UNIT}
systemctl daemon-reload
systemctl enable --quiet --now sublet
"""


@pytest.fixture(scope="module")
def store() -> Iterator[ImageStore]:
    """A store with the image, built as its recipe says on a Debian of our own, without a network."""
    box, wheels = have_box("image", PACKAGES), have_wheels(ROOT / "locks" / "run.txt")
    with tempfile.TemporaryDirectory(prefix="sublet-", dir="/tmp") as place:  # Podman wants a path below 50 characters
        yield from build_image(Path(place), box, wheels)


def build_image(place: Path, box: Path, wheels: Path) -> Iterator[ImageStore]:
    """The store, once the image is in it."""
    context = place / "context"
    for name in ("deploy/Containerfile", "locks/run.txt"):
        (context / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, context / name)
    build_wheel(ROOT, context / "dist")
    (place / "pip.conf").write_text("[global]\nno-index = true\nfind-links = /wheels\n")
    with open_store(place) as opened:
        opened.import_directory(box, BASE)
        mounts = ("-v", f"{wheels}:/wheels:ro", "-v", f"{place / 'pip.conf'}:/etc/pip.conf:ro")
        # Where no container can be made while an image is built, a chroot can; it wants the machine's network.
        how = ("--isolation=chroot", "--network=host", "--pull=never", "--build-arg", f"BASE={BASE}")
        opened.did("build", *how, *mounts, "-t", IMAGE, "-f", context / "deploy" / "Containerfile", context)
        yield opened


def ask_health(store: ImageStore, name: str) -> dict[str, object]:
    """How the service in a container is; empty while it does not answer."""
    done = store.does("exec", name, "python3", "-c", LOOK)
    return dict(json.loads(done.stdout)) if done.returncode == 0 else {}


def test_the_image_serves_as_an_ordinary_user_and_keeps_its_state_in_the_volume(
    store: ImageStore, tmp_path: Path
) -> None:
    (tmp_path / "sublet.toml").write_text(SETTINGS)
    mounts = ("-v", "state:/var/lib/sublet", "-v", f"{tmp_path / 'sublet.toml'}:/etc/sublet/sublet.toml:ro")
    store.start("first", IMAGE, *mounts)
    health = eventually(lambda: ask_health(store, "first"), "answering", SOON, 1.0)
    assert isinstance(health, dict)
    assert (health["status"], health["mode"]) == ("ok", "gateway")
    assert store.did("exec", "first", "id", "-un").strip() == "sublet"
    store.did("exec", "first", "sublet", "person", "add", OPERATOR, "--role", "operator")
    store.did("stop", "--time", "60", "first")
    assert store.did("inspect", "first", "--format", "{{.State.ExitCode}}").strip() == "0", (
        "it ends when it is asked to"
    )
    store.start("second", IMAGE, *mounts)
    eventually(lambda: ask_health(store, "second"), "answering again", SOON, 1.0)
    assert OPERATOR in store.did("exec", "second", "sublet", "person", "list")
    store.did("rm", "--force", "--time", "10", "first", "second")


def test_systemd_starts_the_unit_restarts_it_after_a_crash_and_stops_it(store: ImageStore) -> None:
    store.start("machine", IMAGE, "--systemd=always", "--user=0", '--entrypoint=["/lib/systemd/systemd"]')
    eventually(lambda: "systemd" in store.does("exec", "machine", "cat", "/proc/1/comm").stdout, "booting", SOON, 0.5)
    eventually(lambda: store.does("exec", "machine", "systemctl", "is-system-running").returncode == 0, "up", SOON, 0.5)
    store.did("exec", "--interactive", "machine", "sh", stdin=INSTALL)
    health = eventually(lambda: ask_health(store, "machine"), "answering", SOON, 1.0)
    assert isinstance(health, dict)
    assert health["mode"] == "gateway"
    first = read_unit(store)
    assert (first["ActiveState"], first["User"], first["UnitFileState"]) == ("active", "sublet", "enabled")
    store.did("exec", "machine", "kill", "-9", first["MainPID"])
    eventually(lambda: read_unit(store)["NRestarts"] == "1" and ask_health(store, "machine"), "its restart", SOON, 1.0)
    second = read_unit(store)
    assert second["MainPID"] not in ("0", first["MainPID"])
    store.did("exec", "machine", "systemctl", "reload", "sublet")
    assert (ask_health(store, "machine")["status"], read_unit(store)["MainPID"]) == ("ok", second["MainPID"])
    store.did("exec", "machine", "systemctl", "stop", "sublet")
    last = read_unit(store)
    assert (last["ActiveState"], last["Result"], last["ExecMainStatus"]) == ("inactive", "success", "0")


def read_unit(store: ImageStore) -> dict[str, str]:
    """What systemd says of the unit."""
    wanted = "ActiveState,User,UnitFileState,MainPID,NRestarts,Result,ExecMainStatus"
    shown = store.did("exec", "machine", "systemctl", "show", "sublet", "-p", wanted)
    return dict(line.split("=", 1) for line in shown.splitlines())
