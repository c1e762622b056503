"""QR codes are the standard's: its own examples, and a reader by its tables."""

from __future__ import annotations

import pytest

from sublet.people.model.qr_code import BLOCKS, correct, draw_blocks, draw_path, lay_patterns, make_code
from tests.qr_reader import read, read_blocks, read_path

MOST = (14, 26, 42, 62, 84, 106, 122, 152, 180, 213, 251, 287, 331)  # bytes, by version, at level M
URI = "otpauth://totp/Sublet%20gate.example.org:ann%40example.org?secret=ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def test_error_correction_and_version_are_those_of_the_standards_examples() -> None:
    data = bytes.fromhex("10200C566180EC11EC11EC11EC11EC11")  # annex I: 01234567 at 1-M
    assert bytes(correct(data, 10)) == bytes.fromhex("A524D4C1ED36C7872C55")
    grid = lay_patterns(7)  # annex D: 000111 110010010100
    assert "".join("01"[bool(grid[34 + i % 3][i // 3])] for i in range(17, -1, -1)) == "000111110010010100"


@pytest.mark.parametrize("version", range(1, len(BLOCKS) + 1))
def test_text_that_just_fits_is_read_again(version: int) -> None:
    text = (URI * 4)[: MOST[version - 1]]
    code = make_code(text)
    assert code is not None
    assert len(code) == 17 + 4 * version
    assert read(code) == text
    longer = make_code(f"{text}x")
    assert longer is None or len(longer) == len(code) + 4


def test_what_a_terminal_and_a_page_show_is_read_again() -> None:
    code = make_code(f"{URI}ü")
    assert code is not None
    assert read_blocks("\n".join(draw_blocks(code))) == f"{URI}ü"
    assert read_path(draw_path(code)) == f"{URI}ü"
