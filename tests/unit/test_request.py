"""A request's document is read whole, or the field that can't be understood is named."""

import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.documents.kinds import IVOA, KINDS, NODE_COMPUTE, short_name, uri_of
from sublet.booking.documents.request import read_request
from sublet.booking.documents.short import full_document
from sublet.booking.model.request import GIB, Data, Limit, Range, Recurring, Request, Storage, Volume, Window
from sublet.kernel.document import parse_document
from sublet.kernel.errors import BadRequest
from tests.examples import examples

NOW = datetime(2026, 11, 15, 20, tzinfo=UTC)
COMMAND = {"kind": "urn:sublet:kind:executable:command", "argv": ["true"]}
EVERYTHING = f"""
executable:
  kind: "{IVOA}executable/docker-container.yaml"
  meta: {{name: "analysis", description: "square root example"}}
  image: {{locations: ["ghcr.io/zarquan/heliophorus-cantliei:sha-831ee57"]}}
  privileged: false
  command: ["60", "0"]
  network:
    ports:
      - {{access: true, protocol: "HTTP", path: "/lab", internal: {{port: 8888}}}}
compute:
  kind: "{IVOA}compute/simple-compute-resource.yaml"
  meta: {{name: "compute-001"}}
  cores: {{min: 2, max: 4}}
  memory: {{min: 4, max: 8}}
  volumes:
    - kind: "{IVOA}volume/simple-volume-mount.yaml"
      meta: {{name: "input-volume"}}
      path: "/input"
      mode: "READONLY"
      resource: "input-data"
storage:
  - kind: "{IVOA}storage/simple-storage-resource.yaml"
    meta: {{name: "scratch"}}
    size: {{min: 10, max: 20}}
data:
  - kind: "{IVOA}data/simple-data-resource.yaml"
    meta: {{name: "input-data", uuid: "48905255-2ec1-4205-8936-89d47455f693"}}
    storage: "scratch"
    location: "https://data.example.org/cube.fits"
    schedule: {{preparing: {{duration: "PT10M"}}}}
schedule:
  requested: {{start: "2026-12-01T09:00:00Z/PT3H", duration: "PT4H"}}
costs:
  - {{kind: "{IVOA}costs/simple-minmax-float-cost.yaml", type: "urn:ivoa:calycopis:cost:monetary", max: 1.0}}
metrics:
  - {{type: "urn:ivoa:calycopis:metric:compute-performance", min: 150.0}}
"""


def read(document: dict[str, Any]) -> Request:
    return read_request(document, NOW)


def asking(**parts: Any) -> Request:
    return read({"executable": COMMAND, **parts})


def compute(**fields: Any) -> Request:
    return asking(compute={"kind": NODE_COMPUTE, **fields})


def test_every_block_of_a_full_document_is_read() -> None:
    request = read(dict(parse_document(EVERYTHING.encode())))
    assert request.executable is not None
    assert (request.executable.kind, request.executable.name) == ("docker-container", "analysis")
    assert set(request.executable.fields) == {"image", "privileged", "command", "network"}
    assert (request.compute.cores, request.compute.memory) == (Range(2, 4), Range(4 * GIB, 8 * GIB))
    assert request.compute.volumes == (Volume("input-volume", "/input", "input-data", read_only=True),)
    assert request.storage == (Storage("scratch", Range(10 * GIB, 20 * GIB), ("input-data",)),)
    data = Data("input-data", "simple-data-resource", "https://data.example.org/cube.fits", "scratch")
    assert request.data == (Data(*data_fields(data), prepare=timedelta(minutes=10)),)
    assert request.windows == (Window(*(datetime(2026, 12, 1, hour, tzinfo=UTC) for hour in (9, 12))),)
    assert request.duration == timedelta(hours=4)
    assert request.costs == (Limit("urn:ivoa:calycopis:cost:monetary", None, 1.0, path="costs[0]"),)
    assert request.metrics == (Limit("urn:ivoa:calycopis:metric:compute-performance", 150.0, path="metrics[0]"),)


def data_fields(data: Data) -> tuple[str, str, str, str]:
    return data.name, data.kind, data.location, data.storage


def test_what_is_left_out_is_one_core_one_gib_and_two_hours_as_soon_as_possible() -> None:
    request = asking()
    assert (request.compute.cores, request.compute.memory, request.compute.gpus) == (
        Range(1, 1),
        Range(GIB, GIB),
        Range(0, 0),
    )
    assert (request.duration, request.windows, request.recurring) == (timedelta(hours=2), (), ())


def test_a_request_without_an_executable_is_read_and_left_to_be_answered_no() -> None:
    assert read({}).executable is None


def test_an_unknown_kind_keeps_its_name() -> None:
    uri = "https://example.org/kinds/executable/experimental-package-0.1.yaml"
    request = read({"executable": {"kind": uri, "package": {"location": "x"}, "flags": [1]}})
    assert request.executable is not None
    assert request.executable.kind == "experimental-package"
    assert asking(compute={"kind": "uri:quantum-compute", "qubits": 5}).compute.kind == "quantum-compute"
    assert asking(storage=[{"kind": "uri:tape", "reels": 2}]).storage[0].kind == "tape"
    assert asking(data=[{"kind": "uri:telepathy", "thought": 2}]).data[0].kind == "telepathy"


@pytest.mark.parametrize(
    "uri",
    [
        f"{IVOA}executable/docker-container.yaml",
        "https://www.purl.org/ivoa.net/EB/schema/types/executables/docker-container-1.0",
        "https://www.purl.org/ivoa.net/EB/schema/v1.0/types/executable/docker-container-1.0",
        "uri:docker-container-1.0",
        "urn:docker-container-0.1",
        "docker-container",
    ],
)
def test_every_schemas_uri_gives_the_same_short_name(uri: str) -> None:
    assert short_name(uri) == "docker-container"


def test_short_names_and_uris_lead_to_each_other() -> None:
    for family, names in KINDS.items():
        for name in (*names, "command", "unheard-of"):
            assert short_name(uri_of(family, name)) == name


def test_older_shapes_are_read_like_the_new_one() -> None:
    older = {
        "request": {
            "executable": {
                "name": "step 001",
                "type": "https://www.purl.org/ivoa.net/EB/schema/types/executables/docker-container-1.0",
                "repository": "ghcr.io",
                "image": "ivoa/analytics/example",
                "tag": "2024.08.30",
                "digest": "sha256:ac1b",
            },
            "resources": {
                "compute": [
                    {
                        "name": "compute-001",
                        "cores": {"requested": {"min": 2, "max": 4}},
                        "memory": {"requested": {"min": 4}},
                        "volumes": [{"path": "/in", "mode": "rw", "resource": "input"}],
                    }
                ],
                "data": [{"name": "input", "type": "uri:simple-data-resource-1.0", "location": "https://x.org/a"}],
            },
            "schedule": {"requested": {"start": ["2026-12-01T09:00:00Z/PT3H", "2026-12-02T09:00:00Z/PT3H"]}},
        }
    }
    request = read(older)
    assert request.executable is not None
    assert request.executable.name == "step 001"
    assert request.executable.fields["image"] == {
        "locations": ["ghcr.io/ivoa/analytics/example:2024.08.30"],
        "digest": "sha256:ac1b",
    }
    assert (request.compute.name, request.compute.cores, request.compute.memory) == (
        "compute-001",
        Range(2, 4),
        Range(4 * GIB, 4 * GIB),
    )
    assert request.compute.volumes[0].read_only is False
    assert len(request.windows) == 2


def test_nulls_are_fields_that_are_not_there() -> None:
    nulls = asking(compute={"cores": {"min": 2, "max": None}, "memory": None}, storage=None, schedule=None)
    assert nulls == asking(compute={"cores": 2})


def test_the_extension_carries_nodes_gpus_and_several_windows() -> None:
    request = compute(
        nodes={"min": 2, "max": 4},
        gpus=1,
        memory={"min": 0.5, "max": "1536MiB"},
        starts=["2026-12-01T09:00:00Z/PT3H", "mon-wed 09:00-12:00 Europe/London", "within 1h"],
    )
    assert (request.compute.nodes, request.compute.gpus) == (Range(2, 4), Range(1, 1))
    assert request.compute.memory == Range(GIB // 2, 3 * GIB // 2)
    assert len(request.windows) == 2
    assert request.recurring == (Recurring((0, 1, 2), "09:00", "12:00", "Europe/London"),)


def test_a_maximum_alone_leaves_the_minimum_at_its_default() -> None:
    assert compute(cores={"max": 8}, gpus={"max": 2}).compute.cores == Range(1, 8)
    assert compute(gpus={"max": 2}).compute.gpus == Range(0, 2)


def test_a_time_is_rounded_up_to_whole_seconds() -> None:
    assert asking(schedule={"requested": {"duration": "PT1.2S"}}).duration == timedelta(seconds=2)


def test_links_go_by_name_or_uuid_and_either_way_round() -> None:
    uuid = "48905255-2ec1-4205-8936-89d47455f693"
    request = asking(
        data=[{"meta": {"name": "cube", "uuid": uuid}, "location": "file:///cube"}],
        storage=[{"meta": {"name": "scratch"}, "size": 1, "data": [uuid]}],
        compute={"volumes": [{"path": "in", "resource": uuid}]},
    )
    assert request.data[0].storage == "scratch"
    assert request.storage[0].data == ("cube",)
    assert request.compute.volumes[0].resource == "cube"


def test_data_says_its_size_and_checksum() -> None:
    request = asking(
        data=[
            {"location": "file:///a", "size": "2GiB", "checksum": "SHA256:ABC1"},
            {"kind": "skao-data-resource", "skao": {"datasize": 5, "checksum": {"type": "md5", "value": "0f"}}},
        ]
    )
    assert [(data.size, data.checksum) for data in request.data] == [(2 * GIB, "sha256:abc1"), (5, "md5:0f")]


def test_a_name_is_data_whatever_is_in_it() -> None:
    name = "a;$(rm -rf /) `b` && c"
    request = asking(data=[{"meta": {"name": name}, "location": "file:///a"}])
    assert request.data[0].name == name


@pytest.mark.parametrize(
    ("parts", "field", "hint"),
    [
        ({"executable": "python"}, "executable", ""),
        ({"executable": {}}, "executable.kind", ""),
        ({"executable": {"kind": 5}}, "executable.kind", ""),
        ({"executable": {"kind": "x", "meta": {"name": "a\nb"}}}, "executable.meta.name", ""),
        ({"executable": {"kind": "x", "meta": {"name": "x" * 300}}}, "executable.meta.name", "200"),
        ({"compute": {"cores": 0}}, "compute.cores.max", "whole number"),
        ({"compute": {"cores": -1}}, "compute.cores.max", "whole number"),
        ({"compute": {"cores": True}}, "compute.cores.max", "whole number"),
        ({"compute": {"cores": 10**15}}, "compute.cores.max", "whole number"),
        ({"compute": {"cores": [2]}}, "compute.cores.max", "whole number"),
        ({"compute": {"cores": {"min": 4, "max": 2}}}, "compute.cores", "min"),
        ({"compute": {"memory": -4}}, "compute.memory.max", ""),
        ({"compute": {"memory": 10**12}}, "compute.memory.max", ""),
        ({"compute": {"memory": 10**5000}}, "compute.memory.max", ""),
        ({"costs": [{"type": "x", "max": 10**5000}]}, "costs[0].max", ""),
        ({"compute": {"memory": []}}, "compute.memory.max", "GiB"),
        ({"compute": [{}, {}]}, "compute", "exactly one"),
        ({"compute": {"volumes": {}}}, "compute.volumes", ""),
        ({"compute": {"volumes": [{"path": "a"}]}}, "compute.volumes[0].resource", ""),
        ({"compute": {"volumes": [{"path": "a", "resource": "b"}]}}, "compute.volumes[0].resource", "none"),
        ({"storage": {}}, "storage", "dash"),
        ({"storage": [{"size": "10"}]}, "storage[0].size.max", "10GiB"),
        ({"data": [{}]}, "data[0].location", ""),
        ({"data": [{"location": "a", "checksum": "abc"}]}, "data[0].checksum", "sha256"),
        ({"data": [{"location": "a", "storage": "b"}]}, "data[0].storage", ""),
        ({"data": [{"name": "a", "location": "x"}] * 2}, "data[1].meta.name", "differ"),
        ({"schedule": {"requested": {"duration": "P1H"}}}, "schedule.requested.duration", "PT1H"),
        ({"schedule": {"requested": {"duration": 90}}}, "schedule.requested.duration", ""),
        ({"schedule": {"requested": {"duration": "PT0S"}}}, "schedule.requested.duration", ""),
        ({"schedule": {"requested": {"duration": "P500D"}}}, "schedule.requested.duration", "400d"),
        ({"schedule": {"requested": {"start": "one day"}}}, "schedule.requested.start", "tomorrow 9am"),
        ({"schedule": {"requested": {"start": ["x"]}}}, "schedule.requested.start[0]", ""),
        ({"schedule": {"requested": {"start": ["now"] * 101}}}, "schedule.requested.start", "100"),
        ({"compute": {"starts": "now"}}, "compute.starts", "dash"),
        ({"costs": [{"max": 5}]}, "costs[0].type", ""),
        ({"costs": [{"type": "x", "max": "much"}]}, "costs[0].max", ""),
        ({"metrics": [{"type": "x", "min": 3, "max": 2}]}, "metrics[0]", ""),
        ({"run": "python", "compute": {}}, "run", "form"),
        ({"platform": 5.5}, "platform", ""),
    ],
)
def test_a_field_that_cannot_be_understood_is_named(parts: dict[str, Any], field: str, hint: str) -> None:
    with pytest.raises(BadRequest) as caught:
        asking(**parts)
    assert caught.value.values["field"] == field
    assert f": {field}: " in caught.value.message
    assert hint in caught.value.advice


def test_paths_stay_inside_the_session() -> None:
    for path in ("../out", "a/../../b", "/", ".", "./"):
        with pytest.raises(BadRequest, match="inside the session"):
            asking(data=[{"name": "a", "location": "x"}], compute={"volumes": [{"path": path, "resource": "a"}]})


def test_a_document_in_the_one_form_stays_as_it_is() -> None:
    once = full_document(parse_document(EVERYTHING.encode()))
    assert full_document(once) == once


WORDS = """
executable compute storage data schedule costs metrics platform kind type meta name uuid cores memory gpus nodes
min max requested start starts duration volumes path mode resource size location checksum request resources spec
run script image notebook bag interactive env time max_cost parameters tasks template grid preparing
"""
names = st.sampled_from(WORDS.split())
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**400)])
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["4GiB", "2-8", "PT2H", "now", "2026-12-01T09:00:00Z/PT3H", "mon 09:00-12:00", "command", "a"])
)
documents = st.dictionaries(
    names,
    st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4), max_leaves=12
    ),
    max_size=5,
)


@examples(200)
@given(documents)
def test_any_document_is_a_request_or_a_bad_request(document: dict[str, Any]) -> None:
    before = repr(document)
    with contextlib.suppress(BadRequest):
        assert isinstance(read(document), Request)
        once = full_document(document)
        assert full_document(once) == once
    assert repr(document) == before


def test_a_price_limit_below_nothing_is_refused() -> None:
    with pytest.raises(BadRequest, match="less than nothing"):
        read_request({"run": ["true"], "max_cost": -4}, NOW)
