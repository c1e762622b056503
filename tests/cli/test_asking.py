"""Asking and running: what is typed becomes a request, and what comes of it is an exit code."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.gpu_sorts import GpuSort
from sublet.booking.views.offers import ReasonView, RunWayList, RunWayView
from sublet.booking.views.quotes import QuoteView, TermsView
from sublet.booking.views.results import ResultList
from sublet.booking.views.sessions import ConnectorView
from tests.canned import ID, Said, a_no, a_session, a_yes, an_end, an_offer
from tests.cli.conftest import Serve, Type

pytestmark = pytest.mark.usefixtures("in_utc")

MONEY = "urn:ivoa:calycopis:cost:monetary"


def test_ask_says_yes_in_three_manners(type_in: Type, canned: Serve) -> None:
    canned({"POST /v1/offersets": Said(a_yes(an_offer()))})
    typed = type_in("ask", "--cores", "2", "--", "true")
    assert (typed.code, typed.out.splitlines()[0].split()[:3]) == (0, ["OFFER", "WHERE", "START"])
    assert "sublet accept 3f2a91c0" in typed.err
    assert type_in("ask", "-q", "--", "true").out == "3f2a91c0\n"
    assert json.loads(type_in("ask", "--json", "--", "true").out)["result"] == "YES"


def test_ask_says_no_with_exit_code_1(type_in: Type, canned: Serve) -> None:
    canned({"POST /v1/offersets": Said(a_no(ReasonView(kind="urn:x", field="f", message="No way.")))})
    assert (type_in("ask", "--", "true").code, type_in("run", "--", "true").code) == (1, 1)
    assert type_in("ask", "--", "true").out.splitlines()[:2] == ["NO", "  No way."]
    assert type_in("ask", "-q", "--", "true").out == ""


POSSIBLE = RunWayView(platform="here", way="papermill", possible=True)
IMPOSSIBLE = RunWayView(platform="far", way="podman", possible=False, why="there is no podman")


def test_ways_are_explained(type_in: Type, canned: Serve) -> None:
    canned({"POST /v1/offersets/ways": Said(RunWayList(items=(POSSIBLE, IMPOSSIBLE)))})
    typed = type_in("ask", "--explain-ways", "--", "true")
    assert (typed.code, [line.split() for line in typed.out.splitlines()]) == (
        0,
        [
            ["WHERE", "WAY", "POSSIBLE", "WHY"],
            ["here", "papermill", "yes"],
            ["far", "podman", "no", "there", "is", "no", "podman"],
        ],
    )
    assert type_in("ask", "--explain-ways", "-q", "--", "true").out == "here papermill\n"


def test_without_a_way_the_exit_code_is_1(type_in: Type, canned: Serve) -> None:
    canned({"POST /v1/offersets/ways": Said(RunWayList(items=(IMPOSSIBLE,)))})
    assert type_in("ask", "--explain-ways", "--", "true").code == 1


def test_the_sorts_of_gpu_of_an_offer_and_of_a_session_are_told(type_in: Type, canned: Serve) -> None:
    sorts = (GpuSort("a100", "550.54"), GpuSort("v100"))
    offer = an_offer(gpus=2, gpu_sorts=sorts)
    session = a_session(gpus=2, gpu_sorts=sorts)
    canned({"POST /v1/offersets": Said(a_yes(offer)), f"GET /v1/sessions/{ID}": Said(session)})
    typed = type_in("ask", "--gpus", "2", "--", "true")
    assert f"note: {offer.platform}: GPUs: a100, driver 550.54 or v100" in typed.err.splitlines()
    assert "2 GPUs (a100, driver 550.54 or v100)" in type_in("status", ID).out


def test_data_that_is_in_its_address_is_no_folder_called_data(type_in: Type, canned: Serve) -> None:
    service = canned({"POST /v1/offersets": Said(a_yes(an_offer()))})
    inline = ["data:,a:b", "data:text/plain;name=a.txt,x:y"]
    words = [word for item in inline for word in ("--data", item)]
    assert type_in("ask", *words, "--", "true").code == 0
    assert json.loads(service.heard[0].body)["data"] == inline
    Path("data").mkdir()
    assert type_in("ask", "--data", "data:in,1", "--", "true").code == 0
    [folder] = json.loads(service.heard[-1].body)["data"]
    assert folder["path"] == "in,1"


def test_options_and_a_command_become_the_short_form(type_in: Type, canned: Serve, tmp_path: Path) -> None:
    service = canned({"POST /v1/offersets": Said(a_yes(an_offer()))})
    Path("sim.py").touch()
    Path("lib").mkdir()
    Path("lib/in.csv").touch()
    Path("run.sh").write_text("echo $((1+1))\n")
    words = ["--cores", "2-4", "--gpus", "1", "--time", "10m", "--start", "now", "--start", "mon 9-10 UTC"]
    words += ["--env", "A=b=c", "--max-cost", "1.5", "--name", ";$(x)", "--data", "https://example.org:8080/x:in"]
    assert type_in("ask", *words, "--", "python3", "sim.py", "lib/in.csv", "/etc/hosts", "../x").code == 0
    here = tmp_path / "cwd"
    assert json.loads(service.heard[0].body) == {
        "run": ["python3", "sim.py", "lib/in.csv", "/etc/hosts", "../x"],
        "cores": "2-4",
        "gpus": 1,
        "time": "10m",
        "start": ["now", "mon 9-10 UTC"],
        "env": {"A": "b=c"},
        "max_cost": 1.5,
        "name": ";$(x)",
        "data": [
            {"location": "https://example.org:8080/x", "path": "in", "writable": True},
            {"location": str(here / "sim.py"), "path": "sim.py", "writable": True},
            {"location": str(here / "lib/in.csv"), "path": "lib/in.csv", "writable": True},
        ],
    }
    assert type_in("ask", "--script", "run.sh").code == 0
    assert json.loads(service.heard[1].body) == {"script": "echo $((1+1))\n", "name": "run.sh"}
    assert type_in("ask", "--notebook", "https://example.org/n.ipynb", "--param", "n=3", "--param", "s=a b").code == 0
    assert json.loads(service.heard[2].body) == {
        "notebook": "https://example.org/n.ipynb",
        "parameters": {"n": 3, "s": "a b"},
        "name": "n.ipynb",
    }
    assert "no notebook n.ipynb here" in type_in("ask", "--notebook", "n.ipynb").err


def test_a_start_in_words_is_meant_by_the_clock_here_and_is_said_back(
    type_in: Type, canned: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = canned({"POST /v1/offersets": Said(a_yes(an_offer()))})
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    said = type_in("ask", "--start", "2026-12-01 14:00", "--", "true")
    Path("job.yaml").write_text("run: echo hello\nstart: 2026-12-01 2pm\n")
    type_in("ask", "job.yaml")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    for heard in service.heard:
        assert json.loads(heard.body)["start"] == "2026-12-01T08:30:00Z/2026-12-01T08:35:00Z"
    assert "1 Dec" in said.err
    assert "14:00 and 14:05 IST" in said.err


def test_a_document_comes_from_a_file_or_from_stdin(type_in: Type, canned: Serve) -> None:
    service = canned({"POST /v1/offersets": Said(a_yes(an_offer()))})
    Path("job.yaml").write_text("run: echo hello\ncores: 1\n")
    assert type_in("ask", "job.yaml", "--cores", "3").code == 0
    assert type_in("ask", "-", stdin="run: echo hello\n").code == 0
    assert type_in("ask", "job.yaml", "--", "echo", "other").code == 0
    sent = [json.loads(heard.body) for heard in service.heard]
    assert sent[0] == {"run": "echo hello", "cores": 3, "name": "job"}
    assert sent[1] == {"run": "echo hello", "name": "echo hello"}
    assert sent[2] == {"run": ["echo", "other"], "name": "echo other", "cores": 1}


def test_a_sweep_is_a_bag_with_the_same_wishes_as_a_run(type_in: Type, canned: Serve, tmp_path: Path) -> None:
    service = canned(
        {"POST /v1/offersets": Said(a_yes(an_offer())), f"POST /v1/sessions/{ID}/accept": Said(a_session())}
    )
    Path("sim.py").touch()
    Path("a.csv").touch()
    wishes = ["--cores", "4", "--time", "1h", "--grid", "in=a.csv,b.csv", "--grid", "n=1:2", "--retries", "1", "-d"]
    typed = type_in("sweep", *wishes, "--", "python3", "sim.py", "{in}", "{n}")
    assert (typed.code, typed.out) == (0, "3f2a91c0\n")
    assert "brings sim.py, a.csv (0 B)" in typed.err
    assert "runs 4 tasks" in typed.err
    sent = json.loads(service.heard[0].body)
    assert (sent["cores"], sent["time"], sent["name"]) == (4, "1h", "python3 sim.py {in} {n}")
    assert sent["bag"] == {
        "template": ["python3", "sim.py", "{in}", "{n}"],
        "strict": True,
        "grid": {"in": ["a.csv", "b.csv"], "n": ["1", "2"]},
        "retries": 1,
    }
    assert [item["path"] for item in sent["data"]] == ["sim.py", "a.csv"]


def test_a_sweep_shows_its_first_tasks_and_asks_nobody(type_in: Type, canned: Serve) -> None:
    service = canned({})
    Path("lines").write_text("one line\ntwo\n")
    typed = type_in("sweep", "--each-line", "lines", "--dry-run", "--", "f", "{line}")
    assert (typed.code, typed.out, typed.err) == (0, "f 'one line'\nf two\n", "2 tasks\n")
    found = json.loads(type_in("sweep", "--each-line", "lines", "--dry-run", "--json", "--", "f", "{line}").out)
    assert found["first"][0] == {"task": 0, "parameters": {"line": "one line"}, "argv": ["f", "one line"]}
    assert type_in("sweep", "--grid", "a=1:99999", "--dry-run", "--", "f", "{a}").code == 2
    assert "a is given twice" in type_in("sweep", "--grid", "a=1", "--grid", "a=2", "--", "f", "{a}").err
    assert type_in("sweep", "--grid", "a=1", "f").code == 2
    assert service.heard == []


def test_a_table_of_a_session_that_has_none_says_what_has_one(type_in: Type, canned: Serve) -> None:
    canned({f"GET /v1/sessions/{ID}/results": Said(ResultList(items=(), size=0))})
    typed = type_in("result", "--table", ID)
    assert typed.code == 1
    assert "A sweep or a bag has one" in typed.err


def test_the_example_is_a_request(type_in: Type) -> None:
    from sublet.client.documents import parse

    example = type_in("ask", "--example").out
    assert "run" in parse(example.encode())
    assert example == (Path(__file__).parents[2] / "examples" / "first.yaml").read_text()


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (an_end(code=7), 7),
        (an_end("signalled", signal=9), 137),
        (an_end("timeout"), 124),
        (an_end("cancelled"), 130),
        (an_end("out-of-memory"), 137),
        (an_end("staging-failed"), 1),
    ],
)
def test_run_follows_and_exits_as_the_job_did(end: Any, code: int, type_in: Type, canned: Serve) -> None:
    over = Said(b"", headers={"Sublet-Ended": "true"})
    words = {"stdout": Said([b"out\n"]), "stderr": Said([b"err\n"])}

    def logs(heard: Any) -> Said:
        return words["stderr" if "stderr" in heard.target else "stdout"] if "follow" in heard.target else over

    canned(
        {
            "POST /v1/offersets": Said(a_yes(an_offer())),
            f"POST /v1/sessions/{ID}/accept": Said(a_session()),
            f"GET /v1/sessions/{ID}": Said(a_session(phase="FAILED", end=end)),
            f"GET /v1/sessions/{ID}/logs": logs,
        }
    )
    typed = type_in("run", "--", "true")
    assert (typed.code, typed.out) == (code, "out\n")
    assert "err\n" in typed.err
    quiet = type_in("run", "-q", "--", "true")
    assert (quiet.code, quiet.out, quiet.err) == (code, "out\n", "err\n")
    as_json = type_in("run", "--json", "--", "true")
    assert json.loads(as_json.out)["end"]["kind"] == end.kind


def test_run_does_not_spend_money_unasked(type_in: Type, canned: Serve) -> None:
    offer = an_offer(costs=(QuoteView(type=MONEY, min=3, max=3, description="in EUR"),))
    service = canned({"POST /v1/offersets": Said(a_yes(offer)), f"POST /v1/sessions/{ID}/accept": Said(a_session())})
    typed = type_in("run", "--", "true")
    assert (typed.code, typed.out) == (1, "")
    assert "3 EUR" in typed.err
    assert [heard.method for heard in service.heard] == ["POST", "DELETE"], "what it held is given back"
    assert type_in("run", "--yes", "--detach", "-q", "--", "true").out == "3f2a91c0\n"
    limited = type_in("run", "--max-cost", "5", "--detach", "-q", "--", "true")
    assert (limited.code, limited.out) == (0, "3f2a91c0\n"), "who said how much it may cost is not asked again"


def test_what_names_a_file_that_is_not_here_is_refused_before_anything_is_asked(type_in: Type, canned: Serve) -> None:
    service = canned({"POST /v1/offersets": Said(a_yes(an_offer()))})
    Path("nofiles.py").touch()
    Path("job.yaml").write_text("notebook: gone.ipynb")
    for words, missing in (
        (("--image", "nothere.sif", "--", "true"), "There is no image file nothere.sif here"),
        (("--notebook", "gone.ipynb"), "There is no notebook gone.ipynb here"),
        (("job.yaml",), "There is no notebook gone.ipynb here"),
        (("--", "python3", "nofile.py"), "There is no file nofile.py here"),
    ):
        for verb in ("ask", "run"):
            typed = type_in(verb, *words)
            assert (typed.code, missing in typed.err) == (2, True), typed.err
    assert "hint: Did you mean nofiles.py?" in typed.err
    assert service.heard == []
    assert "note: nofile.py is not here" in type_in("ask", "--image", "python:3", "--", "python3", "nofile.py").err
    assert len(service.heard) == 1


def test_a_command_line_in_one_word_is_refused_before_anything_is_asked(type_in: Type, canned: Serve) -> None:
    service = canned({"POST /v1/offersets": Said(a_yes(an_offer()))})
    for verb in ("ask", "run"):
        typed = type_in(verb, "--", "echo a b | wc -w")
        assert (typed.code, service.heard) == (2, [])
        assert "There is no program called echo a b | wc -w; the whole line was given as one word." in typed.err
        assert "hint: Write the words apart, as in -- echo a …; for a shell, -- sh -c '…' or --script." in typed.err
    Path("my prog").touch()
    assert type_in("ask", "-q", "--", "./my prog").code == 0
    assert type_in("ask", "-q", "--stay", "--", "not here").code == 0
    assert type_in("ask", "-q", "--image", "x", "--", "not here").code == 0


def test_a_program_above_the_directory_is_refused_and_other_files_there_are_named(
    type_in: Type, canned: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = canned({"POST /v1/offersets": Said(a_yes(an_offer()))})
    Path("sub").mkdir()
    for name in ("sim.py", "x.csv", "sub/here.py"):
        Path(name).touch()
    monkeypatch.chdir("sub")
    for words in (("python3", "../sim.py"), ("../sim.py",)):
        typed = type_in("run", "--", *words)
        assert (typed.code, service.heard) == (2, [])
        assert "../sim.py is above the session's own directory, and can't be sent there." in typed.err
        assert "--data ../sim.py, and call it sim.py" in " ".join(typed.err.split())
    named = type_in("ask", "--", "python3", "here.py", "--data=../x.csv", "..", "../nothing")
    assert (
        "note: ../x.csv is above this directory, and is not brought; --data ../x.csv brings it as x.csv." in named.err
    )
    assert named.err.count("note:") == 1
    assert "note:" not in type_in("ask", "--stay", "--", "python3", "../sim.py").err


def test_a_place_that_takes_no_files_is_refused_before_anything_is_run_or_fetched(type_in: Type, canned: Serve) -> None:
    service = canned({})
    Path("taken").write_text("mine\n")
    Path("folder").mkdir()
    for words in (("run", "--", "true"), ("sweep", "--grid", "a=1", "--", "f", "{a}"), ("again", ID), ("result", ID)):
        for place in ("taken", "taken/below"):
            typed = type_in(words[0], "--out", place, *words[1:])
            assert (typed.code, "taken is not a directory" in typed.err) == (2, True), typed.err
    assert "folder is a directory; name a file" in type_in("result", ID, "--archive", "folder").err
    assert "there is no directory" in type_in("result", ID, "--archive", "nowhere/all.tar.gz").err
    assert service.heard == []
    assert Path("taken").read_text() == "mine\n"


def test_a_program_is_not_run_as_a_script_that_no_shell_can_read(type_in: Type, canned: Serve) -> None:
    service = canned({"POST /v1/offersets": Said(a_yes(an_offer()))})
    Path("sim.py").write_text("import sys\n")
    typed = type_in("ask", "--script", "sim.py")
    assert (typed.code, "hint: Run it with: sublet run -- python3 sim.py" in typed.err) == (2, True), typed.err
    assert service.heard == []
    Path("sim.py").write_text("#!/usr/bin/env python3\nimport sys\n")
    assert type_in("ask", "--script", "sim.py").code == 0


def test_a_command_without_dashes_is_shown_with_them(type_in: Type, canned: Serve) -> None:
    canned({})
    typed = type_in("run", "--cores", "2", "python3", "sim.py", "a b")
    assert (typed.code, "Write -- before the command: -- python3 sim.py 'a b'" in typed.err) == (2, True), typed.err


def test_whoever_stays_with_an_interactive_session_reads_what_ctrl_c_does(type_in: Type, canned: Serve) -> None:
    way = ConnectorView(kind="uri:jupyter-lab", status="AVAILABLE", protocol="HTTP", location="http://here/lab")
    ready = a_session(phase="AVAILABLE", kind="interactive", connectors=(way,))
    over = a_session(phase="COMPLETED", kind="interactive", end=an_end())
    canned(
        {
            "POST /v1/offersets": Said(a_yes(an_offer())),
            f"POST /v1/sessions/{ID}/accept": Said(a_session(phase="PREPARING", kind="interactive")),
            f"GET /v1/sessions/{ID}": [Said(ready), Said(over)],
        }
    )
    lines = type_in("run", "--interactive", "lab").err.splitlines()
    assert lines[-3:] == [
        "Ctrl-C here lets it go on.",
        "JupyterLab is ready. Open this in a browser:",
        "http://here/lab",
    ]


@pytest.mark.parametrize(
    ("offers", "words"),
    [
        ("b", "1 offer, held until "),
        ("bl", " or longer, the last until "),
        ("bp", "1 of them held until "),
        ("bpp", "; for the others nothing is held. Take one"),
        ("p", "; nothing is held. Take one"),
    ],
)
def test_only_what_is_booked_is_said_to_be_held(type_in: Type, canned: Serve, offers: str, words: str) -> None:
    booked = an_offer()
    longer = replace(booked, expires=booked.expires + timedelta(hours=1))
    kinds = {"b": booked, "l": longer, "p": replace(booked, terms=TermsView(kind="predicted"))}
    canned({"POST /v1/offersets": Said(a_yes(*(kinds[offer] for offer in offers)))})
    assert words in type_in("ask", "--", "true").err


def test_the_help_calls_nothing_held_that_is_not(type_in: Type) -> None:
    help = " ".join(type_in("ask", "--help").out.split())
    assert "Booked offers are held for you until then; in a shared queue nothing is held." in help
