"""`sublet job submit` refuses what could never run on an annex, before anything is submitted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Type


@pytest.mark.parametrize("word", ["-interactive", "-i", "-Inter", "--interactive"])
def test_an_interactive_job_is_refused_with_what_to_do_instead(type_in: Type, tmp_path: Path, word: str) -> None:
    (tmp_path / "job.sub").write_text("executable = /bin/sh\nqueue\n")
    typed = type_in("job", "submit", str(tmp_path / "job.sub"), "--annex", "example", "--", word)
    assert typed.code == 2
    assert f"{word} can't be used on an annex" in typed.err
    assert "sublet run --interactive" in typed.err


@pytest.mark.parametrize("line", ["universe = java", "Universe=parallel", "  universe = local"])
def test_a_universe_that_runs_on_no_node_is_refused(type_in: Type, tmp_path: Path, line: str) -> None:
    (tmp_path / "job.sub").write_text(f"executable = a\n{line}\nqueue\n")
    typed = type_in("job", "submit", str(tmp_path / "job.sub"), "--annex", "example")
    assert (typed.code, "don't run on an annex" in typed.err) == (2, True)
    (tmp_path / "plain.sub").write_text("executable = a\nqueue\n")
    typed = type_in("job", "submit", str(tmp_path / "plain.sub"), "--annex", "example", "--", "-append", line)
    assert (typed.code, "don't run on an annex" in typed.err) == (2, True)
