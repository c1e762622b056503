"""The short form that a person writes says the same as the full document."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.documents.kinds import NODE_COMPUTE, SIMPLE_COMPUTE
from sublet.booking.documents.request import read_request
from sublet.booking.documents.short import full_document, is_short
from sublet.booking.model.request import GIB, Range, Request, Volume
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.kernel.document import parse_document
from sublet.kernel.errors import BadRequest

NOW = datetime(2026, 11, 15, 20, tzinfo=UTC)
EXAMPLES = Path(__file__).parents[2] / "examples"


def read(text: str) -> Request:
    return read_request(parse_document(text.encode()), NOW)


def fields(text: str) -> dict[str, Any]:
    executable = read(text).executable
    assert executable is not None
    return {"kind": executable.kind, **executable.fields}


def test_a_line_to_run_is_split_into_words_and_nothing_is_a_shell() -> None:
    assert fields("run: python sim.py --name 'a b' $HOME;") == {
        "kind": "command",
        "argv": ["python", "sim.py", "--name", "a b", "$HOME;"],
    }


@pytest.mark.parametrize(
    ("line", "operator"),
    [
        ("echo a b | wc -w", "|"),
        ("python sim.py > out.txt", ">"),
        ("python sim.py >out.txt 2>&1", ">"),
        ("a 2>err.txt", "2>"),
        ("sort <in.txt", "<"),
        ("make && make install", "&&"),
        ("true ; false", ";"),
        ("sleep 9 &", "&"),
        ("echo 'a | b' | wc", "|"),
    ],
)
def test_a_line_for_a_shell_is_refused_as_its_operators_would_be_words(line: str, operator: str) -> None:
    for text in (
        f"run: {json.dumps(line)}",
        f"steps: [{json.dumps(line)}]",
        f"bag: [{json.dumps(line)}]",
        f"image: x\nrun: {json.dumps(line)}",
    ):
        with pytest.raises(BadRequest, match=re.escape(f"no shell reads it, and {operator} would be a word")):
            read(text)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("grep '|' x", ["grep", "|", "x"]),
        ('awk "a > b" x', ["awk", "a > b", "x"]),
        ("grep \\| x", ["grep", "|", "x"]),
        ("get http://x/?a=1&b=2 --x='a | b' a->b", ["get", "http://x/?a=1&b=2", "--x=a | b", "a->b"]),
    ],
)
def test_what_is_quoted_or_within_a_word_is_no_operator(line: str, words: list[str]) -> None:
    assert fields(f"run: {json.dumps(line)}")["argv"] == words
    assert fields("run: [grep, '|', x]")["argv"] == ["grep", "|", "x"]


def test_words_in_a_list_stay_as_they_are_written() -> None:
    assert fields("run: [python, sim.py, 3, 0.1, 1.10, 010, true, no]")["argv"] == [
        "python",
        "sim.py",
        "3",
        "0.1",
        "1.10",
        "010",
        "true",
        "no",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("script: |\n  echo hi\n  exit 3", {"kind": "command", "script": "echo hi\nexit 3"}),
        (
            "image: ghcr.io/x/y\nrun: fit --fast\nenv: {A: b}",
            {
                "kind": "docker-container",
                "image": {"locations": ["ghcr.io/x/y"]},
                "command": ["fit", "--fast"],
                "environment": {"A": "b"},
            },
        ),
        (
            "notebook: https://x.org/a.ipynb\nparameters: {n: 3}\nrequirements: [astropy]",
            {
                "kind": "jupyter-notebook",
                "location": "https://x.org/a.ipynb",
                "parameters": {"n": 3},
                "requirements": ["astropy"],
            },
        ),
        (
            "bag: {template: 'fit {n} {m}', grid: {n: [1, 2], m: [3]}, retries: 2}",
            {"kind": "bag", "template": ["fit", "{n}", "{m}"], "grid": {"n": [1, 2], "m": [3]}, "retries": 2},
        ),
        ("bag: [fit 1, [fit, 2]]", {"kind": "bag", "tasks": [["fit", "1"], ["fit", "2"]]}),
        (
            "bag: {tasks: [{name: one, argv: fit 1}]}",
            {"kind": "bag", "tasks": [{"name": "one", "argv": ["fit", "1"]}]},
        ),
        ("interactive: lab", {"kind": "interactive", "interface": "lab"}),
        ("interactive: true", {"kind": "interactive", "interface": "lab"}),
    ],
)
def test_each_thing_to_run_has_its_field(text: str, expected: dict[str, Any]) -> None:
    assert fields(text) == expected


def test_amounts_are_exact_or_a_range() -> None:
    request = read("run: x\ncores: 2-8\nmemory: 4GiB-8GiB\nnodes: 2\ngpus: 0-1\ntime: 1h30m")
    compute = request.compute
    assert (compute.cores, compute.memory) == (Range(2, 8), Range(4 * GIB, 8 * GIB))
    assert (compute.nodes, compute.gpus) == (Range(2, 2), Range(0, 1))
    assert request.duration == timedelta(minutes=90)


def test_what_ivoa_can_say_is_said_in_its_kind_and_the_rest_in_the_extension() -> None:
    plain = full_document({"run": "x", "cores": 2, "memory": "4GiB", "start": "2026-12-01T09:00:00Z/PT3H"})
    assert plain["compute"]["kind"] == SIMPLE_COMPUTE
    assert plain["schedule"]["requested"] == {"duration": "PT2H", "start": "2026-12-01T09:00:00Z/PT3H"}
    for more in ({"gpus": 1}, {"nodes": 2}, {"memory": "512MiB"}, {"start": "within 5m"}, {"start": ["now"]}):
        assert full_document({"run": "x", **more})["compute"]["kind"] == NODE_COMPUTE


def test_starts_may_be_words_or_several() -> None:
    assert read("run: x\nstart: within 5m").windows[0].end == NOW + timedelta(minutes=5)
    assert read("run: x\nstart: mon-wed 09:00-12:00 Europe/London").recurring[0].zone == "Europe/London"
    several = read("run: x\nstart:\n  - 2026-12-01T09:00:00Z/PT3H\n  - tomorrow 9-12\n  - fri 09:00-12:00")
    assert (len(several.windows), len(several.recurring)) == (2, 1)


def test_data_lands_in_the_working_directory_as_it_is_called() -> None:
    request = read('run: x\ndata: ["https://x.org/a/cube.tar.gz?x=1", "file:///b/cube.fits", "https://x.org/"]')
    assert [data.name for data in request.data] == ["cube", "cube-2", "data"]
    assert request.compute.volumes == (
        Volume("volume-1", "cube.tar.gz", "cube", read_only=False),
        Volume("volume-2", "cube.fits", "cube-2", read_only=False),
        Volume("volume-3", "data", "data", read_only=False),
    )


def test_data_from_a_session_is_written_as_its_name_and_path() -> None:
    request = read("run: x\ndata: [{from: first/out/, path: in}, {from: 3f2a91c0/a.csv}, {from: first}]")
    places = ["session:first/out/", "session:3f2a91c0/a.csv", "session:first"]
    assert [data.location for data in request.data] == places
    with pytest.raises(BadRequest, match="from and location"):
        read("run: x\ndata: [{from: first/out/, location: a}]")


def test_data_with_a_name_is_seen_in_a_directory_of_that_name() -> None:
    request = read("run: x\ndata: [{name: stars, location: 'https://x.org/a.csv'}]")
    assert request.compute.volumes == (Volume("volume-1", "data/stars", "stars"),)


def test_two_things_in_one_place_are_refused_by_name() -> None:
    with pytest.raises(BadRequest, match=r"data\[1\]: it would be at x.csv, where x is already"):
        read('run: x\ndata: ["https://x.org/a/x.csv", "https://x.org/b/x.csv"]')


def test_a_folder_lands_in_the_working_directory_itself() -> None:
    request = read("run: x\nworkdir: {location: /home/me/p, ignore: ['*.log', '!a.log'], size: 5KiB}")
    assert request.compute.volumes == (Volume("volume-1", ".", "workdir", read_only=False),)
    [data] = request.data
    assert (data.location, data.size, data.fields) == ("/home/me/p", 5120, {"ignore": ["*.log", "!a.log"]})
    assert read("run: x\nworkdir: /home/me/p").data[0].fields == {}
    with pytest.raises(BadRequest, match="an app has a working directory of its own"):
        read("app: x\nworkdir: /home/me/p")


def test_in_a_container_data_lands_in_the_working_directory_too_and_by_a_name_below_the_root() -> None:
    assert read("image: x\ndata: https://x.org/cube.fits").compute.volumes[0].path == "cube.fits"
    named = read("image: x\ndata: {name: cube, location: 'https://x.org/cube.fits'}")
    assert named.compute.volumes[0].path == "/data/cube"


def test_data_may_say_where_it_is_seen_and_whether_it_may_be_written() -> None:
    more = "path: input, writable: true, checksum: 'sha256:ab', size: 5GiB"
    request = read(f"run: x\ndata: [{{name: in, location: 'file:///a', {more}}}]")
    assert request.compute.volumes == (Volume("volume-1", "input", "in", read_only=False),)
    assert (request.data[0].checksum, request.data[0].size) == ("sha256:ab", 5 * GIB)


def test_storage_is_room_that_can_be_written() -> None:
    request = read("run: x\nstorage: 10GiB")
    assert request.storage[0].size == Range(10 * GIB, 10 * GIB)
    assert request.compute.volumes == (Volume("volume-1", "storage-1", "storage-1", read_only=False),)
    named = read(
        "run: x\nstorage: [{name: scratch, size: 1GiB-2GiB, path: tmp}]\ndata: [{location: a, storage: scratch}]"
    )
    assert named.storage[0].data == ("a",)
    assert named.compute.volumes[1].path == "tmp"


def test_a_name_an_environment_a_platform_and_the_most_to_pay_go_along() -> None:
    request = read(
        "run: x\nname: my run\nenv: {A: 1}\nplatform: here\nqueue: short\nqos: high\nproject: abc\nmax_cost: 5"
    )
    assert request.executable is not None
    assert (request.executable.name, request.platform) == ("my run", "here")
    assert request.scheduler == SchedulerOptions(queue="short", qos="high", project="abc")
    assert request.executable.fields["environment"] == {"A": 1}
    assert request.costs[0].max == 5


def test_a_form_is_short_when_it_has_a_field_that_only_the_short_form_has() -> None:
    assert is_short({"run": "x"})
    assert is_short({"cores": 2})
    assert not is_short({"executable": {}})
    assert not is_short({})


@pytest.mark.parametrize(
    ("text", "field", "hint"),
    [
        ("run: x\ncore: 2", "core", "cores"),
        ("run: x\nscript: y", "script", "one thing"),
        ("run: ''", "run", ""),
        ("run: 'a \"b'", "run", "list"),
        ("run: {a: b}", "run", ""),
        ("run: [a, [b]]", "run[1]", "quotes"),
        ("run: x\nparameters: {a: 1}", "parameters", ""),
        ("run: x\nmemory: 8", "memory", "8GiB"),
        ("run: x\nmemory: true", "memory", "GiB"),
        ("run: x\ncores: many", "cores", "whole number"),
        ("run: x\ntime: 90", "time", "90m"),
        ("run: x\ntime: P1H", "time", "PT1H"),
        ("run: x\nstart: 5", "start", ""),
        ("run: x\nstart: one day", "start", "tomorrow 9am"),
        ("run: x\nstart: [now, later]", "start[1]", "within 2h"),
        ("run: x\nstorage: 10", "storage", ""),
        ("run: x\nstorage: [{name: a}]", "storage[0].size", "10GiB"),
        ("run: x\ndata: [{name: a}]", "data[0].location", ""),
        ("run: x\ndata: [{location: a, writable: maybe}]", "data[0].writable", ""),
        ("run: x\nmax_cost: lots", "max_cost", ""),
        ("run: x\nvolumes: [{path: a}]", "volumes[0]", "resource"),
        ("bag: {task: [a]}", "bag.task", "tasks"),
        ("notebook: a.ipynb\neach_node: true", "each_node", "Remove"),
        ("bag: {tasks: a}", "bag.tasks", "dash"),
    ],
)
def test_a_mistake_in_the_short_form_is_named(text: str, field: str, hint: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read(text)
    assert caught.value.values["field"] == field
    assert hint in caught.value.advice


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_example_is_a_request(file: Path) -> None:
    request = read(file.read_text())
    assert request.executable is not None


def test_sessions_that_come_first_are_named_one_or_several_in_both_forms() -> None:
    assert read("run: 'true'\nafter: 3f2a91c0\n").after == ("3f2a91c0",)
    assert read("run: 'true'\nafter: [3f2a91c0, 77b1, 3f2a91c0]\n").after == ("3f2a91c0", "77b1")
    full = full_document(parse_document(b"run: 'true'\nafter: [3f2a91c0]\n"))
    assert full["after"] == ["3f2a91c0"]
    assert read_request(full, NOW).after == ("3f2a91c0",)
    for wrong in ("after: 7", "after: [[]]", "after: ['']", f"after: [{', '.join(f'a{i}' for i in range(101))}]"):
        with pytest.raises(BadRequest, match="after"):
            read(f"run: 'true'\n{wrong}\n")


def test_an_app_is_named_with_its_version_parameters_and_tasks_and_sees_its_data_below_job() -> None:
    short = {"app": "summa", "version": 3, "parameters": {"a": 0}, "tasks": 4, "data": ["https://x/y.nc"]}
    full = full_document(short)
    assert full["executable"] == {
        "kind": "urn:sublet:kind:executable:app",
        "meta": {},
        "app": "summa",
        "version": 3,
        "parameters": {"a": 0},
        "tasks": 4,
    }
    assert full["compute"]["volumes"][0]["path"] == "/job/data/y"
