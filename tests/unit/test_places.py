"""Places: what may be declared, how a request and a manifest name them, and what is said where one is missing."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sublet.apps.manifests.reader import read_manifest
from sublet.apps.model.facilities import Facilities, find_had
from sublet.apps.model.manifest import AppPlace, from_json, to_json
from sublet.apps.model.needs import NeedKind, add_found_places, find_needs
from sublet.apps.model.request import add_places
from sublet.booking.documents.request import read_request
from sublet.booking.model.offer import Reason
from sublet.booking.model.places import BoundPlace, PlaceWish, variable_of
from sublet.booking.model.request import Executable, Request
from sublet.data.model.places import DeclaredPlace, PlaceKind, admits_app, check_declared, find_place, scratch_name
from sublet.kernel.errors import BadRequest
from sublet.kinds.inside import container_tools as tools
from sublet.platforms.told import tell_places

NOW = datetime(2026, 11, 17, tzinfo=UTC)
SHARED = DeclaredPlace(
    "compute_shared",
    "far",
    PlaceKind.REFERENCE,
    "/data/x",
    "/compute_shared",
    False,
    timedelta(days=7),
    (),
    "",
    NOW,
    "",
)
MANIFEST = {"name": "flood", "container": "python", "execution_stage": "python main.py"}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"path": "$SCRATCH/x"}, ""),
        ({"path": "~/x"}, ""),
        ({"path": "x"}, "begins with /"),
        ({"path": "/a:b"}, "container tools can't be given"),
        ({"path": "/a\nb"}, "container tools can't be given"),
        ({"path": "/a/../b"}, "has a .. in it"),
        ({"path": ""}, "its path is missing"),
        ({"name": "a b"}, "its name has letters"),
        ({"target": "/"}, "from / on"),
        ({"target": "x"}, "from / on"),
        ({"target": "/etc/ssl"}, "/etc is the image's own"),
        ({"target": "/job/executable"}, "/job is the image's own, or the session's"),
        ({"target": "/a/../b"}, "no plain path"),
        ({"writable": True}, "reference data can't be written"),
        ({"kind": PlaceKind.SCRATCH, "path": "", "writable": True}, ""),
        ({"kind": PlaceKind.SCRATCH, "writable": True, "keep": timedelta(days=400)}, "between a minute and a year"),
    ],
)
def test_a_place_that_could_not_be_bound_is_not_declared(changes: dict[str, Any], why: str) -> None:
    found = check_declared(replace(SHARED, **changes))
    assert why in found
    assert bool(why) == bool(found)


def test_a_request_names_places_by_themselves_or_with_where_it_sees_them() -> None:
    asked = read_request(
        {"run": ["true"], "places": ["ref", {"name": "tmp", "path": "in/tmp", "writable": False}]}, NOW
    )
    assert asked.places == (PlaceWish("ref"), PlaceWish("tmp", "in/tmp", read_only=True))
    full = {"executable": {"kind": "command", "argv": ["true"]}, "places": "ref"}
    assert read_request(full, NOW).places == (PlaceWish("ref"),)


@pytest.mark.parametrize(
    "places",
    [["a", "a"], [{"path": "x"}], ["../x"], [{"name": "a", "mode": "rw"}], [{"name": "a", "writable": "no"}], 7],
)
def test_a_place_that_can_not_be_understood_is_refused(places: Any) -> None:
    with pytest.raises(BadRequest, match="places"):
        read_request({"run": ["true"], "places": places}, NOW)


def test_programs_are_told_where_their_places_are() -> None:
    assert variable_of("my-place_2") == "SUBLET_PLACE_MY_PLACE_2"
    bound = (BoundPlace("a", "/data/a", "a"), BoundPlace("b", "/data/b", "/b"))
    assert tell_places(bound, "/w") == {"SUBLET_PLACE_A": "/w/a", "SUBLET_PLACE_B": "/data/b"}


def test_one_persons_scratch_has_another_name_than_anothers() -> None:
    names = {scratch_name("scratch", person) for person in ("ann@example.org", "bob@example.org", "../ann")}
    assert len(names) == 3
    assert all(name.startswith("scratch-") and "/" not in name for name in names)


def test_apps_that_a_place_is_for_are_the_only_ones_to_use_it() -> None:
    place = replace(SHARED, apps=("flood-*",))
    assert [admits_app(place, app) for app in ("flood-1", "other", "")] == [True, False, False]
    assert admits_app(SHARED, "")


def test_places_are_mounted_and_never_given_to_another_user() -> None:
    plan = {"work": "/s/work", "mounts": [["/s/data", "/in", False]], "places": [["/data/x", "/x", False]], "name": "n"}
    plan |= {"paths": {"podman": "podman"}, "private": "/s/p", "port": 0, "cores": 1, "environment": {}}
    plan |= {"entrypoint": [], "command": ["true"]}
    image = tools.ToolImage(reference="image", config={"User": "1000"})
    argv = tools.podman(plan, image, tools.Machine(), "env")
    mounts = [word for word in argv if word.startswith("type=bind")]
    assert "type=bind,source=/data/x,target=/x" in mounts
    assert "type=bind,source=/s/data,target=/in,U=true" in mounts


def read(files: dict[str, bytes]) -> Any:
    return read_manifest(files, None)


def test_a_manifest_says_which_places_it_needs() -> None:
    said = "places: [ref, {name: tmp, path: /scratch, writable: true, required: false}]"
    text = f"name: x\nimage: python\nrun: main\n{said}\n".encode()
    manifest = read({"sublet.yaml": text}).manifest
    places = (AppPlace("ref"), AppPlace("tmp", "/scratch", writable=True, required=False))
    assert manifest.places == places
    assert from_json(json.loads(json.dumps(to_json(manifest)))).places == places
    assert "places" not in to_json(replace(manifest, places=())), "manifests from before keep their hash"


@pytest.mark.parametrize("said", ["[{name: ref, path: /etc}]", "['a b']", "[a, a]", "[{nom: x}]"])
def test_a_manifest_with_a_place_that_can_not_be_is_refused(said: str) -> None:
    assert read({"sublet.yaml": f"name: x\nimage: python\nrun: main\nplaces: {said}\n".encode()}).errors


@pytest.mark.parametrize(
    ("mount", "places"),
    [
        (["/compute_shared"], [AppPlace("compute_shared", writable=True)]),
        ({"/data/keeling/x": "/compute_scratch"}, [AppPlace("compute_scratch", "/compute_scratch", writable=True)]),
    ],
)
def test_the_mount_of_a_cybergis_manifest_is_a_place_that_it_needs(mount: Any, places: list[AppPlace]) -> None:
    manifest = read({"manifest.json": json.dumps(MANIFEST | {"mount": mount}).encode()}).manifest
    assert list(manifest.places) == places


def test_a_folder_of_a_centre_that_the_code_uses_is_answered_by_a_place_or_told_by_name() -> None:
    files = {"manifest.json": json.dumps(MANIFEST).encode(), "main.py": b"open('/compute_shared/dem.tif')\n"}
    manifest = add_found_places(read(files).manifest, files)
    assert manifest.places == (AppPlace("compute_shared", writable=True, required=False),)
    [need] = [need for need in find_needs(manifest, files) if need.kind is NeedKind.MOUNT]
    missing = find_had(need, Facilities())
    assert missing.has is False
    assert "sublet place add compute_shared --on SYSTEM --path DIRECTORY" in missing.words
    there = find_had(need, Facilities(places={"/compute_shared": ("keeling",)}))
    assert (there.has, there.words) == (True, "as a place of keeling")


def test_an_app_sees_places_where_its_manifest_says_and_nowhere_else() -> None:
    manifest = read({"sublet.yaml": b"name: x\nimage: python\nrun: main\nplaces: [ref]\n"}).manifest
    request = Request(Executable("app"), places=(PlaceWish("tmp"), PlaceWish("ref")))
    assert add_places(request, manifest) == (PlaceWish("ref", read_only=True), PlaceWish("tmp"))
    moved = add_places(replace(request, places=(PlaceWish("tmp", "/opt"),)), manifest)
    assert isinstance(moved, Reason)
    assert "An app sees the place tmp where its manifest says" in moved.message


def test_a_place_is_found_by_its_name_and_by_what_containers_see() -> None:
    other = replace(SHARED, name="ref")
    assert find_place([other, SHARED], PlaceWish("compute_shared")) == SHARED
    assert find_place([other], PlaceWish("compute_shared")) == other
    assert find_place([other], PlaceWish("x")) is None
