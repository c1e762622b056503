"""Lines are found in a log of any length, and a long line does not hold up a page."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.log_search import KEPT, LineSearch
from sublet.booking.pages.logs import readable


def search(text: bytes, words: str, size: int, most: int = 100) -> LineSearch:
    found = LineSearch(words, most)
    for start in range(0, len(text), size):
        found.feed(text[start : start + size])
        if found.is_full:
            return found
    found.finish()
    return found


@given(
    st.lists(st.sampled_from([b"", b"a", b"error", b"an ERROR here", "größe".encode()]), max_size=30),
    st.integers(1, 50),
)
def test_the_same_lines_are_found_however_the_text_is_cut(lines: list[bytes], size: int) -> None:
    text = b"\n".join(lines)
    wanted, offset = [], 0
    for line in lines:
        if b"error" in line.lower():
            wanted.append((offset, line))
        offset += len(line) + 1
    assert [(match.offset, match.text) for match in search(text, "Error", size).matches] == wanted


def test_a_search_that_is_full_goes_on_where_it_ended() -> None:
    text = b"".join(b"hit %d\n" % number for number in range(10))
    first = search(text, "hit", 7, most=4)
    assert [match.text for match in first.matches] == [b"hit 0", b"hit 1", b"hit 2", b"hit 3"]
    assert text[first.at :].startswith(b"hit 4\n")


def test_a_line_without_an_end_is_looked_through_and_not_kept() -> None:
    found = search(b"x" * (3 * KEPT) + b"needle", "needle", KEPT // 2)
    assert [b"needle" in match.text for match in found.matches] == [True]


def test_a_megabyte_without_a_line_break_is_read_at_once() -> None:
    before = time.process_time()
    assert readable(b"x" * (1 << 20)) == "x" * (1 << 20)
    assert readable(b"10%\r" * (1 << 18)) == "10%"
    assert time.process_time() - before < 5  # it took hours when each character was a place to begin at
