"""`sublet job submit` and `sublet dag submit` refuse what could never run on an annex, before anything is submitted."""

from __future__ import annotations

from pathlib import Path

import pytest

from sublet.annexes.model.universes import find_lines
from tests.cli.conftest import Type


@pytest.mark.parametrize("word", ["-interactive", "-i", "-Inter", "--interactive"])
def test_an_interactive_job_is_refused_with_what_to_do_instead(type_in: Type, tmp_path: Path, word: str) -> None:
    (tmp_path / "job.sub").write_text("executable = /bin/sh\nqueue\n")
    typed = type_in("job", "submit", str(tmp_path / "job.sub"), "--annex", "example", "--", word)
    assert typed.code == 2
    assert f"{word} can't be used on an annex" in typed.err
    assert "sublet run --interactive" in typed.err


@pytest.mark.parametrize("line", ["universe = java", "Universe=parallel", "  universe = local", "universe=grid gt2"])
def test_a_universe_that_runs_on_no_node_is_refused(type_in: Type, tmp_path: Path, line: str) -> None:
    (tmp_path / "job.sub").write_text(f"executable = a\n{line}\nqueue\n")
    typed = type_in("job", "submit", str(tmp_path / "job.sub"), "--annex", "example")
    assert (typed.code, "don't run on an annex" in typed.err) == (2, True)
    (tmp_path / "plain.sub").write_text("executable = a\nqueue\n")
    typed = type_in("job", "submit", str(tmp_path / "plain.sub"), "--annex", "example", "--", "-append", line)
    assert (typed.code, "don't run on an annex" in typed.err) == (2, True)


@pytest.mark.parametrize(
    ("universe", "remedy"),
    [
        ("java", "starts Java or MPI itself"),
        ("local", "condor_submit runs it as it is"),
        ("vm", "nothing but its files"),
    ],
)
def test_the_hint_for_such_a_universe_speaks_of_that_universe(
    type_in: Type, tmp_path: Path, universe: str, remedy: str
) -> None:
    (tmp_path / "job.sub").write_text(f"executable = a\nuniverse = {universe}\nqueue\n")
    typed = type_in("job", "submit", str(tmp_path / "job.sub"), "--annex", "example")
    assert remedy in typed.err
    assert ("Java" in typed.err) == (universe == "java")


LIMITED = "Jobs with concurrency_limits = matlab:2 don't run on an annex"
LIMITS = ["concurrency_limits = matlab:2", " Concurrency_Limits=matlab:2 ", "concurrency_limits_expr = matlab:2"]


@pytest.mark.parametrize("line", LIMITS)
def test_jobs_with_concurrency_limits_are_refused(type_in: Type, tmp_path: Path, line: str) -> None:
    (tmp_path / "cwd/job.sub").write_text(f"executable = a\n{line}\nqueue\n")
    typed = type_in("job", "submit", "job.sub", "--annex", "example")
    assert (typed.code, LIMITED in typed.err) == (2, True)
    (tmp_path / "cwd/work.dag").write_text("JOB A job.sub\n")
    typed = type_in("dag", "submit", "work.dag", "--annex", "example")
    assert (typed.code, LIMITED in typed.err, "That is A in the DAG." in typed.err) == (2, True, True)


def test_empty_limits_and_those_of_a_variable_are_left_to_htcondor() -> None:
    text = "concurrency_limits =\nconcurrency_limits = $(limits)\n# concurrency_limits = matlab\nqueue\n"
    assert list(find_lines(text, lambda file: None)) == []


SET = "name = all\niterator = table x {{\n1\n}}\njob {{\nexecutable = a\n{line}\n}}\n"
REFUSED = "Jobs of universe java don't run on an annex: vanilla, container and docker do."


@pytest.mark.parametrize("inside", [True, False], ids=["inside", "in a file of its own"])
def test_a_job_set_with_such_a_universe_is_refused(type_in: Type, tmp_path: Path, inside: bool) -> None:
    (tmp_path / "cwd/java.sub").write_text("executable = a\nuniverse = java\n")
    text = SET.format(line="universe = java") if inside else "name = all\niterator = table x {\n1\n}\njob java.sub\n"
    (tmp_path / "all.set").write_text(text)
    typed = type_in("job", "submit", str(tmp_path / "all.set"), "--annex", "example")
    assert (typed.code, REFUSED in typed.err) == (2, True)


def test_a_universe_in_an_included_file_is_refused(type_in: Type, tmp_path: Path) -> None:
    (tmp_path / "cwd/usual.inc").write_text("UNIVERSE = Java\n")
    (tmp_path / "job.sub").write_text("executable = a\ninclude : usual.inc\nqueue\n")
    typed = type_in("job", "submit", str(tmp_path / "job.sub"), "--annex", "example")
    assert (typed.code, REFUSED in typed.err) == (2, True)


DAGS = {
    "a node": "JOB A java.sub\n",
    "a node in a directory": "job A deep.sub dir deep\n",
    "an inline node": "JOB A {\nexecutable = a\nuniverse = java\n}\n",
    "a node up to a word": "JOB A @=end\nuniverse = java\n@end\n",
    "a shared description": "SUBMIT-DESCRIPTION d {\nuniverse = 10\n}\nJOB A d\n",
    "a final node": "JOB B plain.sub\nFINAL A java.sub\n",
    "a splice": "JOB B plain.sub\nSPLICE S inner.dag\n",
    "a sub-DAG": "SUBDAG EXTERNAL S lower.dag DIR deep\n",
    "an included DAG": "INCLUDE inner.dag\n",
    "a variable": 'JOB A plain.sub\nVARS A x="1" universe="java"\n',
}


@pytest.mark.parametrize("text", DAGS.values(), ids=DAGS)
def test_a_dag_with_such_a_node_is_refused_in_the_same_words(type_in: Type, tmp_path: Path, text: str) -> None:
    cwd = tmp_path / "cwd"
    (cwd / "deep").mkdir()
    for name in ("java.sub", "deep/deep.sub"):
        (cwd / name).write_text("executable = a\nuniverse = java\nqueue\n")
    (cwd / "plain.sub").write_text("executable = a\nqueue\n")
    (cwd / "inner.dag").write_text("# one\nJOB A \\\n java.sub\n")
    (cwd / "deep/lower.dag").write_text("JOB A deep.sub\n")
    (cwd / "work.dag").write_text(text)
    typed = type_in("dag", "submit", "work.dag", "--annex", "example")
    assert (typed.code, REFUSED in typed.err) == (2, True)


def test_what_runs_beside_the_queue_and_what_is_yet_to_be_written_is_left_to_htcondor(
    type_in: Type, tmp_path: Path
) -> None:
    cwd = tmp_path / "cwd"
    (cwd / "beside.sub").write_text("executable = a\nuniverse = scheduler\nqueue\n")
    (cwd / "local.sub").write_text("executable = a\nuniverse = local\nqueue\n")
    text = "PROVISIONER P beside.sub\nJOB A local.sub\nJOB B later.sub\nSPLICE S work.dag\n"  # and no end of itself
    (cwd / "work.dag").write_text(text)
    typed = type_in("dag", "submit", "work.dag", "--annex", "example")
    stopped = type_in("down")  # the service that it was submitted through
    assert "don't run on an annex" not in typed.err
    assert stopped.code == 0


def test_a_provisioner_is_given_every_option_as_it_was_typed(type_in: Type) -> None:
    typed = ("--system", "anvil", "--nodes", "2", "--exclusive", "--option", "comment=a b", "--option", "switches=2")
    printed = type_in("dag", "provisioner", "example", *typed).out
    [words] = [line for line in printed.splitlines() if line.startswith("arguments")]
    assert "'--system=anvil' " in words
    assert "'--exclusive' '--option=comment=a b' '--option=switches=2' '--nodes=2' --job=" in words
    [few] = [line for line in type_in("dag", "provisioner", "example").out.splitlines() if line.startswith("arguments")]
    assert few.endswith("'dag' 'provision' 'example' --job=$(Cluster).$(Process)\"")
    served = type_in("dag", "provisioner", "example", "--service").out
    assert "In the DAG: SERVICE lease FILE" in served
    assert "'dag' 'provision' 'example' '--service' --job=" in served
