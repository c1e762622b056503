"""What a document of any version may say gets an answer: what can't be had is a reason, and what is new is ignored."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.documents.request import Read, read_document
from sublet.booking.model.request import GIB, Limit, Range, Window
from sublet.booking.model.windows import parse_interval
from sublet.kernel.errors import BadRequest

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
KINDS = "https://www.purl.org/ivoa.net/Calycopis-openapi/schema/v1.0/kinds/"
CONTAINER = {
    "kind": f"{KINDS}executable/docker-container.yaml",
    "image": {"locations": ["registry.example.org/tool:1"]},
}
MONETARY = "urn:ivoa:calycopis:cost:monetary"


def read(**parts: Any) -> Read:
    return read_document({"executable": CONTAINER, **parts}, NOW)


@pytest.mark.parametrize(
    ("parts", "field", "kind"),
    [
        ({"data": [{"location": "https://x/y", "storage": "gone"}]}, "data[0].storage", "urn:resource-not-found"),
        ({"data": [{}]}, "data[0].location", "urn:missing-value"),
        ({"data": [{"location": ""}]}, "data[0].location", "urn:missing-value"),
        ({"compute": {"cores": {"min": 10**18, "max": 10**18}}}, "compute.cores.max", "urn:invalid-value"),
        ({"compute": {"cores": {"min": -3}}}, "compute.cores.max", "urn:invalid-value"),
        ({"compute": {"memory": {"min": 8, "max": 4}}}, "compute.memory", "urn:invalid-value"),
        ({"storage": [{"size": {"min": 10**18}}]}, "storage[0].size.max", "urn:invalid-value"),
        ({"costs": [{"kind": "urn:x:bond-cost", "rating": "AAA"}]}, "costs[0].kind", "urn:unknown-kind"),
        ({"compute": {"costs": [{"kind": "urn:x:bond", "type": "x"}]}}, "compute.costs[0].kind", "urn:unknown-kind"),
        ({"metrics": [{"kind": "urn:x:score", "board": 1}]}, "metrics[0].kind", "urn:unknown-kind"),
        ({"costs": [{"max": 3}]}, "costs[0].type", "urn:missing-value"),
        ({"schedule": {"requested": {"duration": "P1M"}}}, "schedule.requested.duration", "urn:invalid-value"),
        ({"schedule": {"requested": {"duration": "P1Y"}}}, "schedule.requested.duration", "urn:invalid-value"),
        ({"schedule": {"requested": {"duration": "P1H"}}}, "schedule.requested.duration", "urn:invalid-value"),
        ({"schedule": {"requested": {"duration": "-PT1H"}}}, "schedule.requested.duration", "urn:invalid-value"),
        ({"schedule": {"requested": {"duration": "PT0S"}}}, "schedule.requested.duration", "urn:invalid-value"),
        (
            {"schedule": {"requested": [{"duration": "PT1H"}, {"duration": "PT2H"}]}},
            "schedule.requested",
            "urn:invalid-value",
        ),
        (
            {"schedule": {"requested": {"start": "2026-12-01T12:00:00Z/2026-12-01T09:00:00Z"}}},
            "schedule.requested.start",
            "urn:invalid-value",
        ),
        ({"schedule": {"requested": {"start": "R5/2026-12-01/P1D"}}}, "schedule.requested.start", "urn:invalid-value"),
        ({"compute": [{}, {}]}, "compute", "urn:invalid-value"),
        ({"resources": {"compute": {}}, "compute": {}}, "resources.compute", "urn:invalid-value"),
        ({"compute": {"volumes": [{"resource": "a"}]}}, "compute.volumes[0].path", "urn:missing-value"),
        (
            {"compute": {"volumes": [{"path": "a", "resource": "b"}]}},
            "compute.volumes[0].resource",
            "urn:resource-not-found",
        ),
        ({"cores": 4}, "cores", "urn:invalid-value"),
    ],
)
def test_what_can_not_be_had_is_a_reason_and_no_error(parts: dict[str, Any], field: str, kind: str) -> None:
    found = read(**parts)
    assert (field, kind) in [(reason.field, reason.kind) for reason in found.reasons]
    assert all(reason.message.startswith(f"{reason.field}: ") for reason in found.reasons)


@pytest.mark.parametrize("amount", [10**19, 10**25, 1e19, 1e25, 1.7e308, "1e19", "1.8e308", -(10**25)])
def test_an_amount_that_nobody_has_is_a_reason_however_it_is_written(amount: float | str) -> None:
    for parts, field in (
        ({"compute": {"cores": amount}}, "compute.cores.max"),
        ({"compute": {"memory": {"min": 1, "max": amount}}}, "compute.memory.max"),
        ({"storage": [{"size": {"min": amount}}]}, "storage[0].size.max"),
        ({"data": [{"location": "https://x/y", "size": amount}]}, "data[0].size"),
    ):
        assert [(reason.field, reason.kind) for reason in read(**parts).reasons] == [(field, "urn:invalid-value")]


@pytest.mark.parametrize("most", [10**19, 1e19, 1e25, 1.7976931348623157e308, 10**300, "1e25", "1.8e308"])
def test_a_cost_limit_may_be_as_large_as_numbers_are(most: float | str) -> None:
    found = read(costs=[{"type": MONETARY, "max": most}])
    assert not found.reasons
    assert [limit.max for limit in found.request.costs] == [min(float(most), sys.float_info.max)]


def test_all_that_can_not_be_had_is_told_at_once() -> None:
    found = read(
        compute={"cores": 10**18, "memory": -1},
        data=[{"location": "https://x/y"}, {}],
        schedule={"requested": {"duration": "P1M"}},
    )
    fields = {"compute.cores.max", "compute.memory.max", "data[1].location", "schedule.requested.duration"}
    assert {reason.field for reason in found.reasons} == fields


@pytest.mark.parametrize(
    ("parts", "field"),
    [
        ({"priority": 5}, "priority"),
        ({"version": "1.1"}, "version"),
        ({"executible": {}}, "executible"),
        ({"compute": {"accelerators": 1}}, "compute.accelerators"),
        ({"compute": {"cores": {"min": 1, "preferred": 2}}}, "compute.cores.preferred"),
        ({"compute": {"memory": {"unit": "GiB"}}}, "compute.memory.unit"),
        ({"storage": [{"lifetime": "P1D"}]}, "storage[0].lifetime"),
        ({"storage": [{"size": {"min": 1, "kind": "x"}}]}, "storage[0].size.kind"),
        ({"data": [{"location": "https://x/y", "mirror": "z"}]}, "data[0].mirror"),
        ({"schedule": {"requested": {"duration": "PT1H", "slack": "PT1M"}}}, "schedule.requested.slack"),
        ({"costs": [{"type": MONETARY, "max": 1, "currency": "EUR"}]}, "costs[0].currency"),
        ({"resources": {"network": {}}}, "resources.network"),
        ({"schedule": {"requested": {"duration": "PT1H"}, "deadline": "P1D"}}, "schedule.deadline"),
        ({"schedule": {"requested": {}, "duration": "PT1H"}}, "schedule.duration"),
        ({"schedule": {"duration": "PT1H", "deadline": "P1D"}}, "schedule.deadline"),
        ({"schedule": [{"duration": "PT1H", "slack": "PT1M"}]}, "schedule.requested.slack"),
        ({"meta": {"name": "x", "owner": "ann"}}, "meta.owner"),
        ({"executable": CONTAINER | {"meta": {"name": "x", "owner": "ann"}}}, "executable.meta.owner"),
        ({"executable": CONTAINER | {"schedule": {"deadline": "P1D"}}}, "executable.schedule.deadline"),
        ({"compute": {"meta": {"rack": 3}}}, "compute.meta.rack"),
        (
            {"compute": {"schedule": {"available": {"duration": "PT1H", "slack": "PT1M"}}}},
            "compute.schedule.available.slack",
        ),
        ({"storage": [{"meta": {"tier": 1}}]}, "storage[0].meta.tier"),
        ({"data": [{"location": "https://x/y", "meta": {"doi": "10.1/x"}}]}, "data[0].meta.doi"),
        (
            {"data": [{"location": "https://x/y", "schedule": {"preparing": {"retries": 2}}}]},
            "data[0].schedule.preparing.retries",
        ),
        (
            {
                "data": [{"name": "a", "location": "https://x/y"}],
                "compute": {"volumes": [{"path": "/a", "resource": "a", "meta": {"label": "x"}}]},
            },
            "compute.volumes[0].meta.label",
        ),
    ],
)
def test_a_field_of_a_newer_schema_is_ignored_and_remarked_on(parts: dict[str, Any], field: str) -> None:
    found = read(**parts)
    assert not found.reasons
    assert [(remark.kind, remark.field) for remark in found.remarks] == [("urn:ignored-field", field)]
    assert "was ignored" in found.remarks[0].message


def test_what_a_service_fills_in_is_not_remarked_on() -> None:
    meta = {"uuid": "u", "name": "n", "url": "x", "description": "d", "created": "c", "modified": "m"}
    meta |= {"messages": [], "options": []}
    times = {"preparing": {"start": "x"}, "available": {"start": "x", "duration": "y"}, "releasing": None}
    part = {"meta": meta, "schedule": times, "phase": "INITIALIZING", "costs": None}
    found = read(meta=meta, executable=CONTAINER | part, compute=part, schedule={"requested": {}, **times})
    assert (found.reasons, found.remarks) == ((), ())


def test_a_mistyped_field_of_a_short_document_is_an_error_as_ever() -> None:
    for document in ({"run": "true", "memmory": "1GiB"}, {"command": "true"}, {"run": "true", "max_cost": -4}):
        with pytest.raises(BadRequest):
            read_document(document, NOW)


def test_a_volume_of_an_unknown_kind_may_have_fields_of_its_own() -> None:
    found = read(compute={"volumes": [{"kind": "urn:x:volume:tape-mount", "drive": 3}]})
    assert not found.reasons
    assert [volume.kind for volume in found.request.compute.volumes] == ["tape-mount"]


S3 = {"kind": f"{KINDS}data/S3-data-resource.yaml", "endpoint": "https://s3.example.org/", "bucket": "b"}
IVOA_DATA = f"{KINDS}data/ivoa-data-resource.yaml"
RUCIO_DATA = f"{KINDS}data/rucio-data-resource.yaml"
SKAO_DATA = f"{KINDS}data/skao-data-resource.yaml"
LINKS = {"access_url": "https://x/links", "content_type": "application/x-votable+xml;content=datalink"}


@pytest.mark.parametrize(
    ("item", "location"),
    [
        (
            S3 | {"template": "https://s3.example.org/{bucket}/{object}", "object": "a b/c?d"},
            "s3+https://s3.example.org/b/a%20b/c%3Fd",
        ),
        (S3 | {"template": "{endpoint}/{bucket}/{object}", "object": "c"}, "s3+https://s3.example.org/b/c"),
        (S3 | {"template": "{endpoint}/{bucket}/{object}"}, "s3+https://s3.example.org/b/"),
        (S3 | {"template": "https://b.s3.example.org/{object}", "object": "c d"}, "https://b.s3.example.org/c%20d"),
        ({"kind": IVOA_DATA, "ivoa": {"ivoid": "ivo://a/b", "obscore": {"access_url": "https://x/y"}}}, "https://x/y"),
        (
            {
                "kind": IVOA_DATA,
                "ivoa": {"ivoid": "ivo://a/b", "datalink": LINKS, "obscore": {"access_url": "https://x/y"}},
            },
            "https://x/y",
        ),
        ({"kind": IVOA_DATA, "ivoa": {"ivoid": "ivo://a/b"}}, "ivo://a/b"),
        ({"kind": IVOA_DATA, "ivoa": {"ivoid": "ivo://a/b", "datalink": LINKS}}, "datalink+https://x/links"),
        ({"kind": RUCIO_DATA, "rucio": {"scope": "ska", "object": "a b"}}, "rucio:ska:a%20b"),
        (
            {"kind": RUCIO_DATA, "rucio": {"scope": "ska", "object": "x", "endpoint": "https://r.example.org:8443/"}},
            "rucio://r.example.org:8443/ska:x",
        ),
        ({"kind": SKAO_DATA, "skao": {"namespace": "testing", "objectname": "map.fits"}}, "skao:testing:map.fits"),
    ],
)
def test_data_whose_fields_make_an_address_is_brought_from_there(item: dict[str, Any], location: str) -> None:
    found = read(data=[item])
    assert (found.reasons, [data.location for data in found.request.data]) == ((), [location])


@pytest.mark.parametrize(
    ("item", "field"),
    [
        (S3, "template"),
        (S3 | {"template": "https://x/{bucket}"}, "object"),
        (S3 | {"template": "https://x/{region}/{object}", "object": "c"}, "template"),
        (S3 | {"template": "s3://{bucket}/{object}", "object": "c"}, "template"),
        ({"kind": IVOA_DATA}, "ivoa.ivoid"),
        ({"kind": RUCIO_DATA, "rucio": {"scope": "ska"}}, "rucio.object"),
        ({"kind": RUCIO_DATA, "rucio": {"scope": "a", "object": "b", "endpoint": "ftp://x"}}, "rucio.endpoint"),
    ],
)
def test_data_without_an_address_is_a_no(item: dict[str, Any], field: str) -> None:
    assert [reason.field for reason in read(data=[item]).reasons] == [f"data[0].{field}"]


def test_a_length_of_at_least_and_at_most_is_the_least() -> None:
    found = read(schedule={"requested": {"duration": {"min": "PT15M", "max": "PT30M"}}})
    assert (found.reasons, found.request.duration) == ((), timedelta(minutes=15))


def test_units_count_and_are_not_ignored() -> None:
    found = read(
        compute={"memory": {"min": 512, "max": 2048, "units": "Mi bytes"}, "cores": {"min": 2, "units": "cores"}}
    )
    assert (found.reasons, found.request.compute.memory) == ((), Range(GIB, 2 * GIB))
    assert read(compute={"memory": {"min": 8, "units": "GiB"}}).request.compute.memory.min == 8 * GIB
    for part, unit in (("cores", "m cores"), ("memory", "words")):
        odd = read(compute={part: {"min": 4, "units": unit}})
        assert [reason.field for reason in odd.reasons] == [f"compute.{part}.units"]


@pytest.mark.parametrize(
    ("said", "least", "most"),
    [
        (0, 1, 1),
        (0.5, 1, 1),
        ("512MiB", 1, 1),
        ({"min": 0, "max": 0.5}, 1, 1),
        ({"max": 3.7}, 1, 3),
        ({"min": 0.2, "max": 3.7}, 1, 3),
        ({"min": 1.2, "max": 1.7}, 2, 2),
        ({"min": 2}, 2, 2),
    ],
)
def test_plain_memory_is_whole_gib_and_at_least_one(said: Any, least: int, most: int) -> None:
    found = read(compute={"memory": said})
    assert (found.reasons, found.request.compute.memory) == ((), Range(least * GIB, most * GIB))


def test_memory_of_the_extension_is_as_it_was_asked_for() -> None:
    kind = "urn:sublet:kind:compute:node-compute-resource"
    assert read(compute={"kind": kind, "memory": 0.5}).request.compute.memory == Range(GIB // 2, GIB // 2)
    assert read_document({"run": "true", "memory": "512MiB"}, NOW).request.compute.memory.min == GIB // 2


OLDER = "https://www.purl.org/ivoa.net/EB/schema/v1.0/types"


def test_numbers_among_the_words_of_a_command_are_words() -> None:
    found = read(executable=CONTAINER | {"command": [10, 0, 1.5, True, "x"], "entrypoint": ["sleep", 3]})
    assert found.request.executable is not None
    assert found.request.executable.fields["command"] == ["10", "0", "1.5", "true", "x"]
    assert found.request.executable.fields["entrypoint"] == ["sleep", "3"]


def test_only_a_document_without_an_executable_is_said_to_need_one() -> None:
    for odd in ({"compute": [{}, {}]}, {"compute": {"volumes": ["gone"]}, "volumes": []}, {"cores": 4}):
        assert "urn:executable-required" not in [reason.kind for reason in read(**odd).reasons]
    none = read_document({"compute": {"cores": 10**18}}, NOW)
    assert [reason.kind for reason in none.reasons] == ["urn:invalid-value", "urn:executable-required"]


def test_limits_of_components_are_read_with_their_part() -> None:
    cheap = [{"type": MONETARY, "max": 0.5}]
    found = read(
        costs=cheap, compute={"costs": cheap}, storage=[{"costs": cheap}], executable=CONTAINER | {"costs": cheap}
    )
    assert found.request.costs == tuple(
        Limit(MONETARY, None, 0.5, part, f"{part}.costs[0]".lstrip("."))
        for part in ("", "executable", "compute", "storage[0]")
    )


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2026-12-01T09:00:00Z/P1M", (2026, 12, 1), (2027, 1, 1)),
        ("2027-01-31T09:00:00Z/P1M", (2027, 1, 31), (2027, 2, 28)),
        ("2026-12-01T09:00:00Z/P1Y", (2026, 12, 1), (2027, 12, 1)),
        ("P1Y2M3D/2028-03-31T09:00:00Z", (2027, 1, 28), (2028, 3, 31)),
    ],
)
def test_from_a_day_on_months_and_years_have_a_length(
    text: str, start: tuple[int, int, int], end: tuple[int, int, int]
) -> None:
    window = parse_interval(text)
    assert window == Window(datetime(*start, 9, tzinfo=UTC), datetime(*end, 9, tzinfo=UTC))


# What the schema lets a document say, whatever it means: its own types, and anything in fields that it doesn't know.
INTEGERS = st.integers(-(10**30), 10**30)
RANGE = st.fixed_dictionaries({}, optional={"min": INTEGERS, "max": INTEGERS, "newer": st.none() | st.text(max_size=3)})
NAMES = st.sampled_from(["a", "b", "", "a\nb"])
URIS = st.sampled_from([f"{KINDS}data/simple-data-resource.yaml", "urn:x:y", "https://example.org/z-2.0.yaml#q"])
META = st.fixed_dictionaries({}, optional={"name": NAMES, "description": st.text(max_size=3)})
DURATIONS = st.sampled_from(["PT1H", "-PT1H", "P1M", "P1Y", "P1W", "PT0S", "P9999Y", "P1DT1H1M1.5S", "P1H"])
STARTS = st.sampled_from(["2027-01-01T00:00:00Z/PT1H", "P1M/2027-01-01", "2027-01-01/P1M", "9999-12-31/P1Y", "a/b"])
ITEMS = st.lists(
    st.fixed_dictionaries(
        {"kind": URIS},
        optional={"type": URIS, "min": st.floats(allow_nan=False, allow_infinity=False), "max": INTEGERS, "of": META},
    ),
    max_size=2,
)
EXTRA = {"meta": META, "costs": ITEMS, "metrics": ITEMS, "newer": st.lists(st.integers(), max_size=2)}
VOLUMES = st.lists(
    st.fixed_dictionaries({"kind": URIS}, optional={"path": st.text(max_size=4), "resource": NAMES, **EXTRA}),
    max_size=2,
)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "executable": st.fixed_dictionaries({"kind": URIS}, optional=EXTRA),
        "compute": st.fixed_dictionaries({}, optional={"cores": RANGE, "memory": RANGE, "volumes": VOLUMES, **EXTRA}),
        "storage": st.lists(st.fixed_dictionaries({}, optional={"size": RANGE, **EXTRA}), max_size=2),
        "data": st.lists(
            st.fixed_dictionaries(
                {"kind": URIS}, optional={"location": st.text(max_size=4), "storage": NAMES, **EXTRA}
            ),
            max_size=3,
        ),
        "schedule": st.fixed_dictionaries(
            {}, optional={"requested": st.fixed_dictionaries({}, optional={"duration": DURATIONS, "start": STARTS})}
        ),
        "costs": ITEMS,
        "metrics": ITEMS,
        "newer": META,
    },
)


@given(DOCUMENTS)
def test_nothing_that_the_schema_allows_is_an_error(document: dict[str, Any]) -> None:
    found = read_document({"schedule": {}, **document}, NOW)
    assert found.request.duration > timedelta(0)
    assert all(reason.message and reason.field for reason in (*found.reasons, *found.remarks))
