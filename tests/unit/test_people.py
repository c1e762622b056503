"""Which addresses, identities and groups there can be."""

from __future__ import annotations

import pytest

from sublet.kernel.errors import BadAddress, BadIdentity, BadName
from sublet.people.model.people import check_address, check_group, check_identity


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("Anna@Example.ORG", "anna@example.org"),
        (" anna@example.org ", "anna@example.org"),
        ("a.b+c_d-e'f@sub.example.org", "a.b+c_d-e'f@sub.example.org"),
        ("anna@bücher.example", "anna@xn--bcher-kva.example"),
        ("anna@xn--bcher-kva.example", "anna@xn--bcher-kva.example"),
    ],
)
def test_an_address_is_kept_in_one_way_of_writing(text: str, address: str) -> None:
    assert check_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "anna",
        "@example.org",
        "anna@",
        "anna@localhost",
        "anna@example..org",
        "anna@-example.org",
        ".anna@example.org",
        "an..na@example.org",
        "anna@example.org\nBcc: eve@example.net",
        "anna@example.org\r\nBcc: eve@example.net",
        "anna\n@example.org",
        "anna@example.org\n",
        "anna@exam\x00ple.org",
        "anna@example.org, eve@example.net",
        "anna@example.org eve@example.net",
        "Anna <anna@example.org>",
        '"anna eve"@example.org',
        "<anna@example.org>",
        "anna@[192.0.2.1]",
        "ännä@example.org",
        "anna\u212a@example.org",  # a Kelvin sign, which is a k in small letters
        "anna@example.org\u2028Bcc: x@example.net",
        f"{'a' * 65}@example.org",
        f"anna@{'a.' * 130}org",
        f"anna@{'ü' * 70}.org",
        "*@example.org",  # what a rule would read as a pattern
        "an?a@example.org",
        "an[n]a@example.org",
        "anna%eve@example.org",  # what old relays would send elsewhere
        "eve!anna@example.org",
        "$(id)@example.org",
        "\uff41nna@example.org",  # a wide a, which some mail servers take for an a
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadAddress) as caught:
        check_address(text)
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        ("email", "Anna@Example.org", "anna@example.org"),
        ("oidc", "https://login.example.org 1234", "https://login.example.org 1234"),
        ("uid", "1000", "1000"),
        ("htcondor", "anna@ap.example.org", "anna@ap.example.org"),
        ("system:expanse", "anna7", "anna7"),
    ],
)
def test_an_identity_has_a_kind_and_a_value(kind: str, value: str, kept: str) -> None:
    assert check_identity(kind, value) == (kind, kept)


@pytest.mark.parametrize(
    ("kind", "value"),
    [("phone", "1"), ("system:", "anna"), ("uid", "root"), ("uid", "٣"), ("oidc", ""), ("oidc", "a\nb")],
)
def test_what_is_no_identity_is_refused(kind: str, value: str) -> None:
    with pytest.raises(BadIdentity):
        check_identity(kind, value)


def test_a_groups_name_is_one_word() -> None:
    assert check_group("hydro-2026") == "hydro-2026"
    for name in ("", "2026", "a b", "a:b", "a/b", "a\n", "a" * 101):
        with pytest.raises(BadName):
            check_group(name)
