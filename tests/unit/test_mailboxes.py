"""Which addresses belong to one mailbox, by what is set for their domain."""

from __future__ import annotations

import pytest

from sublet.people.model.mailboxes import Folding, fold_address

SET: dict[str, Folding] = {
    "dots.example": "fold-dots",
    "Plus.example": "keep",
    "*.edu": "keep",
    "*.cs.illinois.edu": "fold",
}


@pytest.mark.parametrize(
    ("address", "plain"),
    [
        ("ada@x.org", "ada@x.org"),
        ("ada+lab@x.org", "ada@x.org"),
        ("ada+@x.org", "ada@x.org"),
        ("ada+a+b@x.org", "ada@x.org"),
        ("a.da+lab@x.org", "a.da@x.org"),
        ("a.da+lab@dots.example", "ada@dots.example"),
        ("a.da@gmail.com", "ada@gmail.com"),
        ("a.d.a+lab@gmail.com", "ada@gmail.com"),
        ("a.da+lab@googlemail.com", "ada@gmail.com"),
        ("ada@googlemail.com", "ada@gmail.com"),
        ("a.da@googlemail.com.evil.org", "a.da@googlemail.com.evil.org"),
        ("a.da@mail.google.com", "a.da@mail.google.com"),
        ("a.da@gmail.com.evil.org", "a.da@gmail.com.evil.org"),
        ("ada+lab@plus.example", "ada+lab@plus.example"),
        ("ada+lab@illinois.edu", "ada+lab@illinois.edu"),
        ("ada+lab@www.cs.illinois.edu", "ada@www.cs.illinois.edu"),
        ("+lab@x.org", "+lab@x.org"),
        ("campus:0123+4", "campus:0123+4"),
        ("*+lab@x.org", "*+lab@x.org"),
        ("*@x.org", "*@x.org"),
        ("*@googlemail.com", "*@gmail.com"),
        ("a.*@gmail.com", "a*@gmail.com"),
    ],
)
def test_an_address_is_folded_to_the_plain_one_of_its_mailbox(address: str, plain: str) -> None:
    assert fold_address(address, SET) == plain
    assert fold_address(plain, SET) == plain


@pytest.mark.parametrize(
    ("by_domain", "address", "plain"),
    [
        ({"gmail.com": "keep"}, "a.da+x@gmail.com", "a.da+x@gmail.com"),
        ({"gmail.com": "fold"}, "a.da+x@gmail.com", "a.da@gmail.com"),
        ({"gmail.com": "fold"}, "a.da+x@googlemail.com", "a.da@gmail.com"),
        ({"gmail.com": "keep"}, "a.da+x@googlemail.com", "a.da+x@googlemail.com"),
        ({"googlemail.com": "keep"}, "a.da@googlemail.com", "a.da@googlemail.com"),
        ({"googlemail.com": "fold"}, "a.da@googlemail.com", "ada@gmail.com"),
        ({"*": "keep"}, "a.da@gmail.com", "ada@gmail.com"),
        ({"*.com": "fold"}, "a.da@googlemail.com", "ada@gmail.com"),
    ],
)
def test_what_is_known_of_a_domain_is_changed_by_its_own_name_alone(
    by_domain: dict[str, Folding], address: str, plain: str
) -> None:
    assert fold_address(address, by_domain) == plain
    assert fold_address(plain, by_domain) == plain
