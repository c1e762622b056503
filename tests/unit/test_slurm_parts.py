"""A session in parts on the far side: each part has its own records, and what they print is one output."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from sublet.booking.model.job import Job, Program
from sublet.platforms.batch.looks import read_looks
from sublet.platforms.batch.scripts import script
from sublet.platforms.slurm.commands import PACKAGE
from tests.unit.test_slurm_job import job, laid_out

COUNT = 'echo "part $SUBLET_PART of $SUBLET_PARTS"; echo "err $SUBLET_PART" >&2; '


def in_parts(place: Path, parts: int, *argv: str, join: tuple[str, ...] = ()) -> Path:
    made, wish = job(*argv, program=Program(argv, join=join), parts=parts)
    assert isinstance(made, Job)
    laid_out(place, made, wish)
    (place / "parts").write_text(f"{parts}\n")
    (place / "duration").write_text("60\n")
    (place / "id").write_text("7\n")
    return place


def run(place: Path, part: int, sh: str = "sh") -> int:
    named = {"SLURM_JOB_ID": str(part + 100), "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": str(part)}
    named["SLURM_JOB_NAME"] = place.name
    environment = {"PATH": f"{place.parent}:{os.environ['PATH']}", "TMPDIR": str(place), **named}
    return subprocess.run([sh, "job.sh", str(place)], cwd=place, env=environment, timeout=30, check=False).returncode


def far(name: str, *words: str) -> str:
    done = subprocess.run(script(name, *words), timeout=30, check=True, stdout=subprocess.PIPE)
    return done.stdout.decode()


@pytest.mark.parametrize("sh", ["dash", "bash"])
def test_each_part_is_told_which_it_is_and_runs_once(tmp_path: Path, sh: str) -> None:
    place = in_parts(tmp_path / "sessions" / "key", 3, "sh", "-c", COUNT + "exit $SUBLET_PART")
    assert [run(place, part, sh) for part in range(3)] == [0, 1, 2]
    assert run(place, 1, sh) == 71
    for part in range(3):
        assert json.loads((place / f"part/{part}/end.json").read_text())["code"] == part
        assert (place / f"part/{part}/stdout").read_text() == f"part {part} of 3\n"
    looks = read_looks(far("look", str(tmp_path), "key", "none"), ["key", "none"])
    assert [looks[f"key/{part}"].record.code for part in range(3)] == [0, 1, 2]  # type: ignore[union-attr]
    assert (looks["key"].parts, looks["key"].joined, looks["none"].claimed) == (3, None, False)


def test_the_output_of_parts_is_read_in_order_and_stays_where_it_is(tmp_path: Path) -> None:
    place = in_parts(tmp_path / "key", 3, "sh", "-c", COUNT)
    run(place, 0)
    run(place, 2)
    (place / "part/1").mkdir()
    (place / "part/1/stdout").write_text("half ")

    def read(offset: int = 0, limit: int = 1000) -> str:
        return far("output", str(place), "stdout", str(offset), str(limit))

    seen = "part 0 of 3\nhalf "
    assert read() == seen, "what is behind a part that runs is not shown yet"
    assert read(5, 3) == seen[5:8]
    assert read(10, 4) == seen[10:14]
    (place / "part/1/stdout").write_text("half done\n")
    (place / "part/1/end.json").write_text("{}")
    whole = "part 0 of 3\nhalf done\npart 2 of 3\n"
    assert read() == whole
    assert [read(at, 7) for at in range(0, len(whole), 7)] == [whole[at : at + 7] for at in range(0, len(whole), 7)]
    assert far("join", str(place)) == "- \n"
    assert (place / "stdout").read_text() == whole


def test_joining_runs_its_program_once_the_output_is_together(tmp_path: Path) -> None:
    join = ("sh", "-c", "echo first; echo 'the last\tword'; echo complaint >&2; exit 75")
    place = in_parts(tmp_path / "key", 2, "sh", "-c", COUNT, join=join)
    for part in range(2):
        run(place, part)
    assert far("join", str(place)) == "75 the last word\n"
    assert (place / "stdout").read_text() == "part 0 of 2\npart 1 of 2\nfirst\nthe last\tword\n"
    assert (place / "stderr").read_text() == "err 0\nerr 1\ncomplaint\n"
    assert far("join", str(place)) == "75 the last word\n"
    assert sorted(path.name for path in place.iterdir() if "." in path.name) == ["job.sh", "life.sh"]


def test_parts_that_have_not_begun_are_spared_when_nothing_is_left(tmp_path: Path) -> None:
    scancel = tmp_path / "scancel"
    scancel.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/cancelled\n')
    scancel.chmod(0o755)
    place = in_parts(tmp_path / "key", 4, "sh", "-c", COUNT + '[ $SUBLET_PART = 1 ] && : >"$SUBLET_CLAIMS/none-left"')
    run(place, 0)
    assert not (tmp_path / "cancelled").exists()
    run(place, 1)
    assert (tmp_path / "cancelled").read_text() == "--quiet --name=key 7_2 7_3\n"
    assert json.loads((place / "part/3/end.json").read_text())["code"] == 0
    assert run(place, 2) == 71


def test_a_cancel_ends_the_parts_that_have_not_begun(tmp_path: Path) -> None:
    place = in_parts(tmp_path / "sessions" / "key", 3, "sh", "-c", COUNT)
    run(place, 0)
    (tmp_path / "scancel").write_text('#!/bin/sh\necho "$@" >cancelled\n')
    (tmp_path / "scancel").chmod(0o755)
    words = script("cancel", str(tmp_path), '"ann"', "key", package=PACKAGE)
    subprocess.run(words, timeout=30, check=True, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert (place / "cancelled").read_text() == "--quiet --name=key\n", "by its name, whatever its number"
    looks = read_looks(far("look", str(tmp_path), "key"), ["key"])
    kinds = [record.kind if (record := looks[f"key/{part}"].record) else "" for part in range(3)]
    assert kinds == ["exited", "cancelled", "cancelled"]
    assert run(place, 1) == 71
