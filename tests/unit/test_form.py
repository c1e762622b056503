"""The ask page's form: to a request and back, and what it says of bad input."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sublet.booking.documents.request import read_request
from sublet.booking.documents.short import full_document
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Request
from sublet.booking.pages.form import EMPTY, Values, check, field_of, read_typed, short_of, values_of
from sublet.booking.pages.logs import readable
from sublet.booking.pages.nearest import heed_reasons

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)


def asked(values: Values) -> Request:
    return read_request(full_document(short_of(values)), NOW)


@pytest.mark.parametrize(
    "more",
    [
        {"script": "#!/bin/sh\necho 'a  b' $(id)\n", "cores": "2-8", "memory": "512MiB-4GiB"},
        {"script": "true", "gpus": "1", "nodes": "2-4", "name": "<b>;$(", "platform": "here"},
        {"what": "image", "image": "docker.io/library/python:3.12", "image_run": "python -c 'print(1)'"},
        {"script": "train.sh", "nodes": "2", "each_node": "true"},
        {"what": "image", "image": "docker.io/library/python:3.12", "nodes": "2", "each_node": "true"},
        {"what": "steps", "steps": "make=python make.py\npython 'a  b.py'", "steps_how": "keep_going"},
        {"what": "steps", "steps": "true", "steps_how": "together", "steps_image": "docker.io/library/python:3.12"},
        {"what": "notebook", "notebook": "https://example.org/a.ipynb", "requirements": "numpy>=2\npandas"},
        {"what": "interactive", "interface": "shell", "start": "mon,tue,wed 09:00-12:00 Europe/London"},
        {"script": "true", "start": "2027-03-02T09:00:00Z/2027-03-02T12:00:00Z", "time": "1h30m"},
        {"script": "true", "data": "cube = https://example.org/cube.fits\nmap = file:/data/map"},
        {"script": "true", "data": "https://example.org/cube.fits"},
        {"script": "true", "places": "scratch, compute_shared"},
        {"script": "true", "queue": "short", "nice": "0", "exclusive": "true", "options": "comment=x\ncontiguous"},
    ],
)
def test_what_is_typed_can_be_asked_and_typed_again(more: Values) -> None:
    values = EMPTY | more
    assert check(values, NOW) == {}
    assert values_of(asked(values)) == values


def test_a_request_that_the_form_can_not_say_is_not_said_in_part() -> None:
    for short in (
        {"bag": [["true"]]},
        {"steps": {"run": ["true"], "together": True, "keep_going": True}},
        {"steps": [{"run": "true", "env": {"A": "1"}}]},
        {"steps": [["sh", "-c", "true\nfalse"]]},
        {"steps": [["a=b"]]},
        {"run": "true", "storage": "1GiB"},
        {"run": "true", "max_cost": 1},
        {"run": "true", "pledge": "lab"},
        {"run": "true", "places": [{"name": "scratch", "path": "tmp"}]},
    ):
        assert values_of(read_request(full_document(short), NOW)) is None


def test_every_amount_is_complained_about_beside_its_own_field() -> None:
    bad = {"cores": "-1", "memory": "much", "gpus": "one", "nodes": "0", "time": "90", "start": "one day"}
    wrong = check(EMPTY | bad, NOW)
    assert set(wrong) == {"script", *bad}
    assert all(said.message and said.hint for said in wrong.values())
    assert "tomorrow 9am" in wrong["start"].hint


def test_only_the_forms_own_fields_are_read() -> None:
    assert read_typed({"script": "a\r\nb", "evil": "x"}) == EMPTY | {"script": "a\nb"}


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("compute.cores.min", "cores"),
        ("schedule.requested.start", "start"),
        ("schedule.requested.duration", "time"),
        ("data[cube].location", "data"),
        ("executable.image.locations[0]", "image"),
        ("costs[0].max", ""),
        ("options.switches", "options"),
    ],
)
def test_a_field_of_a_request_is_found_in_the_form(path: str, field: str) -> None:
    assert field_of(path) == field


def test_the_nearest_yes_of_all_reasons_is_filled_in() -> None:
    reasons = [
        Reason("urn:resource-limit", "compute.cores.min", "", nearest="16"),
        Reason("urn:resource-limit", "compute.memory.min", "", nearest=f"{(3 << 30) + 5}B"),
        Reason("urn:resource-limit", "schedule.requested.start", "", nearest="2027-03-02T09:00:00Z"),
        Reason("urn:not-supported", "executable.kind", "", nearest="a platform with podman"),
    ]
    values, first = heed_reasons(dict(EMPTY), reasons)
    assert (values["cores"], values["memory"], first) == ("16", "3GiB", "cores")
    assert values["start"] == "2027-03-02T09:00:00Z/PT1H"
    assert heed_reasons(dict(EMPTY), reasons[3:]) == (EMPTY, "")


def test_a_log_is_shown_as_a_terminal_would_without_its_colours() -> None:
    assert readable(b"\x1b[1;31mred\x1b[0m\r\n 10%\r 99%\r100%\n\xff\x00end") == "red\n100%\n�end"
