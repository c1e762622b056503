"""Bytes become plain values or a clear error, whatever they are; nothing is guessed or run."""

import contextlib
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.kernel.document import MOST_BYTES, parse_document
from sublet.kernel.errors import BadRequest, TooLarge, WrongType

JSON = "application/json"


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "*/*",
        "application/yaml",
        "text/yaml",
        "application/yml",
        "application/x-yaml",
        "text/x-yaml",
        "application/vnd.ivoa+yaml",
        "application/yaml; charset=utf-8",
        'Application/YAML; charset="UTF-8"',
    ],
)
def test_yaml_is_read_under_each_of_its_names(kind: str) -> None:
    assert parse_document(b"run: [python, sim.py]", kind) == {"run": ["python", "sim.py"]}


@pytest.mark.parametrize("kind", [JSON, "application/json; charset=utf-8", "application/vnd.ivoa+json"])
def test_json_is_read_under_each_of_its_names(kind: str) -> None:
    assert parse_document(b'{"cores": 2}', kind) == {"cores": 2}


@pytest.mark.parametrize(
    "kind", ["application/xml", "text/plain", "multipart/form-data", "nonsense", "application/json; charset=utf-16"]
)
def test_other_types_are_refused(kind: str) -> None:
    with pytest.raises(WrongType):
        parse_document(b"<a/>", kind)


def test_only_plain_numbers_true_false_and_null_are_more_than_text() -> None:
    words = b"[no, yes, on, 010, 1.10, 1e3, 0x10, 1_000, +5, 09:00, 2026-12-01, .nan, '5', \"true\", 12:30:45]"
    assert all(isinstance(word, str) for word in parse_document(b"words: " + words)["words"])
    assert parse_document(b"a: [5, -5, 1.5, true, False, null, ~]")["a"] == [5, -5, 1.5, True, False, None, None]


LARGEST = sys.float_info.max


@pytest.mark.parametrize("kind", ["", JSON])
def test_a_large_number_is_a_number_and_no_error(kind: str) -> None:
    assert parse_document(b'{"a": [10000000000000000000, -9223372036854775809]}', kind)["a"] == [10**19, -(2**63) - 1]
    assert parse_document(b'{"a": ' + b"9" * 300 + b"}", kind)["a"] == 10**300 - 1


def test_a_number_that_no_machine_has_is_the_largest_there_is() -> None:
    body = b'{"a": [1e25, 1.7976931348623157e308, 1.8e308, -1e999, ' + b"9" * 5000 + b", -" + b"9" * 5000 + b"]}"
    assert parse_document(body, JSON)["a"] == [1e25, LARGEST, LARGEST, -LARGEST, LARGEST, -LARGEST]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "empty"),
        (b"# nothing", "empty"),
        (b"null", "empty"),
        (b"[a]", "not a map"),
        (b"run", "not a map"),
        (b"a: 1\na: 2", "twice"),
        (b"a: 1\n---\nb: 2", "several documents"),
        (b"a: [b", "not YAML"),
        (b"\ta: 1", "not YAML"),
        (b"a: !!python/object/apply:os.system [id]", "tag"),
        (b"? [a]\n: 1", "must be text"),
        (b"a: *b", "alias"),
        (b"a: &a [*a]", "alias"),
        (b"\xff\xfer\x00u\x00n\x00", "UTF-8"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "binary"),
        (b"\x89PNG\r\n\x1a\n\x00", "UTF-8"),
        (b"[" * 100_000, "deep"),
        (b"a: " + b"{a: " * 100_000, "deep"),
        (b"- " * 100_000, "deep"),
    ],
)
def test_yaml_that_is_no_document_is_refused_with_words(body: bytes, said: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_document(body)
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "not a map"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": "\\ud800"}', "characters"),
        (b'{"a": "\\u0000"}', "characters"),
        (b'{"\\u0000": 1}', "characters"),
        (b"[" * 100_000, "deep"),
        (b'{"a":' * 100_000, "deep"),
    ],
)
def test_json_that_is_no_document_is_refused_with_words(body: bytes, said: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_document(body, JSON)
    assert said in caught.value.message


def test_a_document_that_unfolds_without_end_is_refused() -> None:
    lines = [b"a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [b"a%d: &a%d [%s]" % (i, i, b",".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, 12)]
    with pytest.raises(BadRequest, match="more than 100000 values"):
        parse_document(b"\n".join(lines))


def test_a_document_that_grows_deep_by_aliases_is_refused() -> None:
    lines = [b"a0: &a0 [x]"] + [b"a%d: &a%d [*a%d]" % (i, i, i - 1) for i in range(1, 100)]
    with pytest.raises(BadRequest, match="deep"):
        parse_document(b"\n".join(lines))


def test_an_alias_stands_for_its_anchor() -> None:
    assert parse_document(b"a: &x {b: 1}\nc: [*x, *x]")["c"] == [{"b": 1}, {"b": 1}]


def test_a_byte_order_mark_is_nothing() -> None:
    assert parse_document(b"\xef\xbb\xbfrun: x") == {"run": "x"}


@pytest.mark.parametrize("kind", ["", JSON])
def test_a_large_document_is_refused_before_it_is_read(kind: str) -> None:
    with pytest.raises(TooLarge):
        parse_document(b'{"a": "' + b"x" * MOST_BYTES + b'"}', kind)


@given(st.binary(max_size=200), st.sampled_from(["", JSON]))
def test_any_bytes_are_a_document_or_a_bad_request(body: bytes, kind: str) -> None:
    with contextlib.suppress(BadRequest):
        assert isinstance(parse_document(body, kind), dict)


@given(st.text(alphabet="abc:-[]{}&*!|>'\"\n #%@`,?0", max_size=60))
def test_any_text_is_a_document_or_a_bad_request(text: str) -> None:
    with contextlib.suppress(BadRequest):
        assert isinstance(parse_document(text.encode()), dict)
