"""The words of old clients, and what they are here."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from sublet.apps.model.draft import Draft, new_id
from sublet.apps.model.manifest import Manifest, Parameter, ResourceBounds
from sublet.apps.model.parameters import as_typed, check
from sublet.apps.model.resources import NAMES
from sublet.apps.run_requests import AppWish, document_of
from sublet.booking.documents.request import read_request
from sublet.booking.model.events import Event, EventKind
from sublet.doors.cybergis.api import paths_of
from sublet.doors.cybergis.manifest import manifest_of, rule_of
from sublet.doors.cybergis.roadmap import read_seed
from sublet.doors.cybergis.wire import (
    data_of,
    event_of,
    job_of,
    list_once,
    mail_of,
    read_options,
    read_wanted,
    secret_in,
    seed_of,
)
from sublet.kernel.errors import BadRequest
from sublet.platforms.port import ResultFile, Results

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def draft(**fields: Any) -> Draft:
    return Draft("1794830400abcde", "bob@example.org", NOW, NOW, fields)


@pytest.mark.parametrize(
    ("sent", "secret"),
    [
        ("sublet_abc", "sublet_abc"),
        (base64.b64encode(b"hub.example.org@sublet_abc").decode(), "sublet_abc"),
        (base64.b64encode(b"http://me@hub:8000@sublet_abc").decode(), "sublet_abc"),
        (base64.b64encode(b"sublet_abc").decode(), base64.b64encode(b"sublet_abc").decode()),
        ("", ""),
        (None, ""),
        (["x"], ""),
        ("\u00e9", "\u00e9"),
    ],
)
def test_a_token_is_found_as_it_is_and_behind_a_host(sent: object, secret: str) -> None:
    assert secret_in(sent) == secret


def test_settings_of_slurm_become_resources_with_their_units() -> None:
    slurm = {"num_of_node": 2, "num_of_task": "8", "cpu_per_task": 1, "memory_per_cpu": "4GB", "time": 90, "gpus": None}
    expected = {"nodes": 2, "tasks": 8, "cores": 1, "memory_per_core": "4GiB", "time": "90m"}
    assert read_wanted(slurm) == expected
    times = {"10:30": "630s", "01:00:00": "01:00:00", "1-00:00:00": "1-00:00:00"}
    assert {text: read_wanted({"time": text})["time"] for text in times} == times
    assert (read_wanted({"partition": "gpu"}), read_options({"partition": "gpu"})) == ({}, {"queue": "gpu"})
    assert read_wanted({"memory": 512, "gpu_per_task": 1}) == {"memory": "512MiB", "gpus_per_task": 1}
    for wrong in ({"qos": "gpu"}, {"init_sbatch_options": ["--x"]}, ["time"]):
        with pytest.raises(BadRequest):
            read_wanted(wrong)


def test_an_event_has_the_name_that_ends_their_loops() -> None:
    kinds = {"session.completed": "JOB_ENDED", "session.failed": "JOB_FAILED", "session.cancelled": "JOB_FAILED"}
    for kind, theirs in {**kinds, "session.moved-up": "SESSION_MOVED_UP"}.items():
        assert event_of(Event(1, NOW, "s", "bob", EventKind(kind)))["type"] == theirs


def test_a_draft_is_an_app_that_was_approved_and_no_other_code() -> None:
    git = {"type": "git", "gitId": "hello"}
    assert seed_of(draft(localExecutableFolder=git, hpc="keeling", param={"a": 0}))["file"] == "hello"
    folders = (None, {"type": "local", "path": "/etc"}, {"type": "git"}, "hello", {"type": "globus", "path": "/x"})
    for folder in folders:
        with pytest.raises(BadRequest):
            seed_of(draft(localExecutableFolder=folder))
    with pytest.raises(BadRequest, match="env"):
        seed_of(draft(localExecutableFolder=git, env={"A": "$(id)"}))


def test_data_folders_are_locations_that_a_mover_takes_or_refuses() -> None:
    assert data_of(None) == data_of({"type": "empty"}) == {}
    assert data_of({"type": "globus", "endpoint": "e", "path": "/p"}) == {"": "globus://e/p"}
    assert data_of({"type": "url", "url": "https://example.org/d"}) == {"": "https://example.org/d"}
    with pytest.raises(BadRequest):
        data_of("somewhere")


def test_a_job_has_every_field_that_old_clients_print() -> None:
    job = job_of(draft(), None)
    printed = ("id", "slurmId", "hpc", "remoteExecutableFolder", "remoteDataFolder", "remoteResultFolder", "param")
    for name in (*printed, "slurm", "userId", "maintainer", "createdAt", "localExecutableFolder", "events", "logs"):
        assert name in job
    assert (job["param"], job["events"], job["isFailed"]) == ({}, [], False)


def test_ids_begin_with_the_time_and_can_not_be_guessed() -> None:
    assert new_id(NOW).startswith("1794830400")
    assert len({new_id(NOW) for _ in range(100)}) == 100


def test_the_roadmaps_form_is_read_by_repository_by_name_or_by_maintainer() -> None:
    assert read_seed({"file": "github://a/b"}).repository == "github://a/b"
    assert read_seed({"file": "hello", "maintainer": "x"}).app == "hello"
    assert read_seed({"maintainer": "SUMMA"}).app == "SUMMA"
    assert read_seed({"file": "x", "data_file": "https://example.org/d"}).data == {"": "https://example.org/d"}


def test_a_wish_is_a_document_like_any_other() -> None:
    wish = AppWish(app="hello", hpc="keeling", data={"": "https://example.org/d", "rain": "https://example.org/r"})
    request = read_request(document_of(wish, "hello", 3, {"a": 0, "b": "", "c": False}), NOW)
    assert request.executable is not None
    assert request.executable.fields["parameters"] == {"a": 0, "b": "", "c": False}
    assert (request.platform, request.executable.fields["version"]) == ("keeling", 3)
    assert [data.name for data in request.data] == ["data", "rain"]
    assert "pinned" not in request.executable.fields


GIB, MIB = 1 << 30, 1 << 20
PARAMETERS = (
    Parameter("years", {"type": "integer", "minimum": 1, "maximum": 50}),
    Parameter("from", {"type": "integer", "minimum": 0, "default": 10}),
    Parameter("depth", {"type": "number", "default": 0.5}),
    Parameter("dry", {"type": "boolean", "default": False}),
    Parameter("kinds", {"type": "array", "default": [1, 2]}),
    Parameter("label", {"type": "string"}),
    Parameter("model", {"enum": ["a", "b"]}),
)


def drawn(rules: dict[str, Any]) -> dict[str, Any]:
    """What their form holds when it is sent as it was drawn; it looks up each of these, and fails without any."""
    found = {}
    for name, rule in rules.items():
        value = rule["default_value"]
        if rule["type"] == "integer":
            assert rule["min"] <= value <= rule["max"]
            assert rule["step"] >= 1
        elif rule["type"] == "string_option":
            assert value in rule["options"]
        else:
            assert isinstance(value, str)
        found[name] = value
    return found


def test_a_form_of_theirs_has_all_that_it_looks_up_and_what_it_sends_is_taken() -> None:
    resources = {name: ResourceBounds(least or 1, 4 * GIB, 2 * GIB) for name, (_, least) in NAMES.items()}
    manifest = Manifest(
        "hello", "sublet.yaml", (), parameters=PARAMETERS, resources=resources, systems=("far", "keeling")
    )
    form = manifest_of(manifest, "https://example.org/hello", "c0ffee", ["keeling", "other"])
    assert form["name"] == "hello"
    assert (form["supported_hpc"], form["default_hpc"]) == (["keeling"], "keeling")
    assert all(rule["unit"] for rule in form["slurm_input_rules"].values())
    drawn(form["slurm_input_rules"])
    sent = drawn(form["param_rules"])
    assert sent == {
        "years": 1,
        "from": "10",
        "depth": "0.5",
        "dry": False,
        "kinds": "[1, 2]",
        "label": "",
        "model": "a",
    }
    assert check(manifest, as_typed(manifest, sent)) == []


@pytest.mark.parametrize(
    ("name", "bounds", "slider"),
    [
        ("memory_per_core", ResourceBounds(200 * MIB, 1000 * MIB, 400 * MIB, 200 * MIB), (200, 1000, 400, 200, "MB")),
        ("memory", ResourceBounds(GIB, 16 * GIB, 2 * GIB, GIB), (1, 16, 2, 1, "GB")),
        ("memory", ResourceBounds(MIB, 16 * GIB, 2 * GIB), (1, 16, 2, 1, "GB")),
        ("time", ResourceBounds(600, 1800, 600, 600), (10, 30, 10, 10, "Minutes")),
        ("time", ResourceBounds(3600, 7200, 3600, 3600), (1, 2, 1, 1, "Hours")),
        ("time", ResourceBounds(1, 30, 20), (1, 1, 1, 1, "Minutes")),
        ("nodes", ResourceBounds(1, 4, 2), (1, 4, 2, 1, "None")),
    ],
)
def test_a_slider_has_whole_numbers_of_a_unit_that_is_small_enough(
    name: str, bounds: ResourceBounds, slider: Any
) -> None:
    rule = rule_of(name, bounds)
    assert tuple(rule[key] for key in ("min", "max", "default_value", "step", "unit")) == slider


def test_the_box_for_a_letter_is_no_setting_of_slurm() -> None:
    git = {"type": "git", "gitId": "hello"}
    slurm = {"time": "01:00:00", "mail_user": ["bob@example.org"], "mail_type": ["FAIL", "END", "BEGIN"]}
    asked = draft(localExecutableFolder=git, slurm=slurm)
    assert seed_of(asked)["slurm"] == {"time": "01:00:00"}
    assert mail_of(asked) == ("bob@example.org", ("failed", "ended", "started"))
    for nobody in ({}, {"mail_user": [""]}, {"mail_user": None}, {"mail_user": [7]}, "time"):
        assert mail_of(draft(slurm=nobody))[0] == ""


def test_an_app_has_the_name_that_was_written_in_lists_for_old_clients_and_is_there_once() -> None:
    manifest = Manifest("hello-world", "manifest.json", (), title="hello world")
    assert manifest_of(manifest, "", "", [])["name"] == "hello world"
    assert list_once({"flood": 1, "hello-world": 2}) == {"flood": 1, "hello_world": 2}
    assert list_once({"flood": 1, "Helloworld": 2, "hello_world": 3}) == {"flood": 1, "Helloworld": 2, "hello_world": 3}
    assert list_once({"rain": 2, "flood": 1}) == {"rain": 2, "flood": 1, "hello_world": 1}, "their form needs it"
    assert list_once({}) == {}


def test_old_clients_see_all_folders_empty_ones_too() -> None:
    left = Results((ResultFile("result/maps/a.png", 3, NOW), ResultFile("log", 1, NOW)), ("result/tables/day",))
    folders = ["/", "/result", "/result/maps", "/result/tables", "/result/tables/day"]
    assert paths_of(left) == [*folders, "/result/maps/a.png", "/log"]
    assert paths_of(Results()) == ["/"]
