"""Documents of older schemas are read as what they mean today."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sublet.booking.model.request import Range
from tests.unit.test_request_answers import OLDER, read


def test_older_lists_of_times_are_the_windows_of_one_request() -> None:
    block = {"duration": "PT1H"}
    several = [block | {"start": "2026-12-01T09:00:00Z/PT1H"}, block | {"start": ["2026-12-02T09:00:00Z/PT1H"]}]
    for schedule in ({"requested": several}, several):
        found = read(schedule=schedule)
        assert not found.reasons
        assert [window.start.day for window in found.request.windows] == [1, 2]
        assert found.request.duration == timedelta(hours=1)


def test_the_oldest_lists_of_resources_are_sorted_by_their_type() -> None:
    compute = {"type": "urn:compute-resource", "spec": {"cores": {"min": 4, "units": "cores"}}}
    data = {"type": "urn:simple-data-resource", "name": "a", "location": "https://x/y"}
    found = read(resources=[compute, data])
    assert ([item.name for item in found.request.data], found.request.compute.kind) == (["a"], "compute-resource")
    odd = read(resources=[{"type": "urn:quantum-resource"}])
    assert [(reason.field, reason.kind) for reason in odd.reasons] == [("resources[0].type", "urn:unknown-kind")]


def test_volumes_may_be_named_in_compute_and_described_beside_it() -> None:
    volume = {"name": "calibration", "path": "/calibration", "resources": ["a"]}
    data = [{"name": "a", "location": "https://x/y"}]
    found = read(compute={"volumes": ["calibration"]}, volumes=[volume], data=data)
    assert (found.reasons, [one.path for one in found.request.compute.volumes]) == ((), ["/calibration"])
    gone = read(compute={"volumes": ["gone"]}, volumes=[volume], data=data)
    assert [reason.kind for reason in gone.reasons] == ["urn:resource-not-found"]


def mount(name: str, path: str, *resources: str) -> dict[str, Any]:
    """A volume as it was described before: beside the compute resource, of several resources."""
    kind = f"{OLDER}/volume/simple-volume-mount-1.0"
    return {"meta": {"name": name}, "kind": kind, "path": path, "cardinality": "INSTANCE", "resources": [*resources]}


def test_volumes_that_are_named_in_meta_are_found_and_each_of_their_resources_is_seen_below_their_path() -> None:
    found = read(
        compute={"volumes": ["flats and darks"]},
        volumes=[mount("flats and darks", "/calibration/", "flat", "dark", "room"), mount("rest", "/in", "cube")],
        data=[
            {"meta": {"name": name}, "location": f"https://data.example.org/{name}.fits"}
            for name in ("flat", "dark", "cube")
        ],
        storage=[{"meta": {"name": "room"}}],
    )
    assert not found.reasons
    assert [(one.path, one.resource) for one in found.request.compute.volumes] == [
        ("/calibration/flat.fits", "flat"),
        ("/calibration/dark.fits", "dark"),
        ("/calibration/room", "room"),
        ("/in", "cube"),
    ]
    assert len({one.name for one in found.request.compute.volumes}) == 4


def test_resources_of_a_volume_that_are_called_alike_are_told_apart() -> None:
    data = [{"meta": {"name": name}, "location": f"https://{name}.example.org/map.fits"} for name in ("a", "b")]
    found = read(volumes=[mount("maps", "/maps", "a", "b")], data=data)
    assert [one.path for one in found.request.compute.volumes] == ["/maps/a", "/maps/b"]
    for names in ([], ["a", "gone"]):
        odd = read(volumes=[mount("maps", "/maps", *names)], data=data)
        assert [reason.field for reason in odd.reasons] != []


def test_an_older_storage_names_its_data_as_resources() -> None:
    data = [{"meta": {"name": "a"}, "location": "https://x/y"}]
    found = read(storage=[{"meta": {"name": "room"}, "resources": ["a"]}], data=data)
    assert (found.reasons, found.remarks, found.request.data[0].storage) == ((), (), "room")


def test_an_older_computer_is_the_compute_resource() -> None:
    kind = f"{OLDER}/computer/simple-compute-resource-1.0"
    found = read(computer={"type": kind, "name": "c", "cores": {"min": 5, "max": 15}})
    assert (found.reasons, found.remarks, found.request.compute.cores) == ((), (), Range(5, 15))
    both = read(computer={"cores": 2}, compute={"cores": 2})
    assert [reason.field for reason in both.reasons] == ["computer"]


@pytest.mark.parametrize("notebook", ["https://x/a.ipynb", {"location": "https://x/a.ipynb"}])
def test_an_older_notebook_has_its_location_as_notebook(notebook: Any) -> None:
    found = read(executable={"type": f"{OLDER}/executable/jupyter-notebook-1.0", "notebook": notebook})
    assert found.request.executable is not None
    assert found.request.executable.fields == {"location": "https://x/a.ipynb"}
