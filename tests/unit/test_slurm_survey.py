"""What was seen of a site is kept for that site, and for no other that has its name later."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.platforms.batch.survey import NEVER, Surveyor
from sublet.platforms.slurm.scheduler import SLURM


@pytest.mark.parametrize(
    ("kept", "now", "is_known"),
    [("u@a:22", "u@a:22", True), ("u@a:22", "u@b:22", False), ("u@a:22", "v@a:22", False), (None, "u@a:22", True)],
)
def test_a_survey_of_another_host_under_the_same_name_is_not_taken(
    tmp_path: Path, kept: str | None, now: str, is_known: bool
) -> None:
    site = {} if kept is None else {"site": kept}  # those of before have none
    as_of = datetime(2026, 1, 1, tzinfo=UTC)
    (tmp_path / "survey.json").write_text(json.dumps({"as_of": as_of.isoformat(), "said": {"nodes": "x"}, **site}))
    surveyor = Surveyor(SLURM.failures("keeling"), tmp_path / "survey.json", timedelta(minutes=5), SLURM.needed, now)
    assert surveyor.as_of == (as_of if is_known else NEVER)
