"""Which addresses belong to one mailbox, by what is set for their domain."""

from __future__ import annotations

import pytest

from sublet.core.mailboxes import Folding, fold_address

SET: dict[str, Folding] = {
    "gmail.com": "fold-dots",
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
        ("a.da+lab@gmail.com", "ada@gmail.com"),
        ("a.da@gmail.com.evil.org", "a.da@gmail.com.evil.org"),
        ("ada+lab@plus.example", "ada+lab@plus.example"),
        ("ada+lab@illinois.edu", "ada+lab@illinois.edu"),
        ("ada+lab@www.cs.illinois.edu", "ada@www.cs.illinois.edu"),
        ("+lab@x.org", "+lab@x.org"),
        ("campus:0123+4", "campus:0123+4"),
        ("*+lab@x.org", "*+lab@x.org"),
        ("*@x.org", "*@x.org"),
    ],
)
def test_an_address_is_folded_to_the_plain_one_of_its_mailbox(address: str, plain: str) -> None:
    assert fold_address(address, SET) == plain
    assert fold_address(plain, SET) == plain
