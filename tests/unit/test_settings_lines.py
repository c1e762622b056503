"""Where in a file a setting is."""

from __future__ import annotations

import pytest

from sublet.kernel.settings_lines import find_line

TEXT = """mode = "gateway"
logs.keep = 3

[platforms."old cluster"] # a comment
kind = "slurm"

[[rules]]
field = "a"
[[ rules ]]
field = "b"
[retention]
  events = "1d"
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("mode",), 1),
        (("logs", "keep"), 2),
        (("platforms", "old cluster", "kind"), 5),
        (("platforms", "old cluster", "user"), 4),
        (("rules", 0, "field"), 8),
        (("rules", 1, "field"), 10),
        (("retention", "events"), 12),
        (("retention", "audit"), 11),
        (("hold",), 0),
    ],
)
def test_a_setting_or_the_table_that_lacks_it_is_found(path: tuple[str | int, ...], line: int) -> None:
    assert find_line(TEXT, path) == line


def test_text_that_is_no_setting_does_not_count() -> None:
    assert find_line("# hold = 1\nholding = 2\n", ("hold",)) == 0
