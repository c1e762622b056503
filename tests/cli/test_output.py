"""How things are drawn: for people, as JSON, and only what a script needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from sublet.cli import asking, sessions
from sublet.cli.output import pairs, table
from sublet.cli.texts import away, length, moment, quoted, size
from sublet.wire.views import (
    CheckList,
    CheckView,
    ConnectorView,
    EventPage,
    EventView,
    Explanation,
    NodeView,
    PauseView,
    PlatformList,
    PlatformView,
    QuoteView,
    ReasonView,
    ResultFileView,
    ResultList,
    SessionPage,
    TermsView,
    TokenView,
)
from tests.canned import ID, NOW, Canned, Said, a_no, a_session, a_yes, an_end, an_offer
from tests.cli.conftest import Type

pytestmark = pytest.mark.usefixtures("in_utc")
Serve = Callable[[Any], Canned]
MONEY = "urn:ivoa:calycopis:cost:monetary"


def drawn(lines: list[str]) -> str:
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (5400, "1 h 30 min"),
        (3601, "1 h"),
        (8 * 86400, "8 d"),
        (90061, "1 d 1 h"),
    ],
)
def test_lengths_have_two_units_at_most(seconds: int, text: str) -> None:
    assert length(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (2 * 1024**3, "2 GiB"), (1536 * 1024**2, "1.5 GiB")]
)
def test_sizes_have_three_digits(count: int, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("later", "text"),
    [
        (timedelta(minutes=5), "today 09:05"),
        (timedelta(days=1), "tomorrow 09:00"),
        (timedelta(days=7), "Mon 23 Nov 09:00"),
        (timedelta(days=400), "Tue 21 Dec 2027 09:00"),
    ],
)
def test_a_moment_has_as_much_of_its_date_as_is_needed(later: timedelta, text: str) -> None:
    assert moment(NOW + later, NOW) == text


def test_near_times_are_relative_to_now() -> None:
    assert away(NOW + timedelta(seconds=3), NOW) == "now"
    assert away(NOW + timedelta(minutes=5), NOW) == "in 5 min"
    assert away(NOW - timedelta(hours=2), NOW) == "2 h ago"


def test_a_price_has_its_currency() -> None:
    assert quoted(QuoteView(type=MONEY, min=0.5, max=0.5, description="in EUR")) == "0.5 EUR"
    assert quoted(QuoteView(type=MONEY, min=0.5, max=1.25, description="in EUR")) == "0.5–1.25 EUR"


def test_a_column_that_is_empty_throughout_is_left_out() -> None:
    assert table(("A", "B", "C"), [("1", "", "3"), ("10", "", "")]) == ["A   C", "1   3", "10"]
    assert pairs([("name", "x"), ("longer name", "y"), ("empty", "")]) == ["name         x", "longer name  y"]


def test_offers_are_drawn_as_a_table() -> None:
    offers = [
        an_offer(),
        an_offer(
            start=NOW + timedelta(days=1),
            cores=4,
            gpus=1,
            why="cheapest",
            costs=(QuoteView(type=MONEY, min=1.2, max=1.2, description="in EUR"),),
        ),
        an_offer(
            platform="cluster",
            start=NOW + timedelta(hours=2),
            terms=TermsView(kind="predicted", p10=NOW + timedelta(hours=1), p90=NOW + timedelta(hours=5), samples=3),
        ),
    ]
    assert drawn(asking.listed(offers, NOW)) == snapshot("""\
OFFER     WHERE    START                                     TIME    CORES  MEMORY  GPUS  PRICE    TERMS      WHY
3f2a91c0  here     now                                       10 min  2      2 GiB   -     -        booked     earliest
3f2a91c0  here     tomorrow 09:00 (in 1 d)                   10 min  4      2 GiB   1     1.2 EUR  booked     cheapest
3f2a91c0  cluster  today 11:00 (today 10:00 to today 14:00)  10 min  2      2 GiB   -     -        predicted  earliest\
""")


def test_a_no_names_each_reason_and_the_nearest_yes() -> None:
    reason = ReasonView(
        kind="urn:resource-limit",
        field="compute.cores.min",
        message="The largest node has 2 cores; 100 was asked for.",
        wanted="100",
        limit="2",
        nearest="2 cores",
        platform="here",
    )
    assert drawn(asking.refused([reason])) == snapshot("""\
NO
  here: The largest node has 2 cores; 100 was asked for.
    field compute.cores.min, wanted 100, limit 2
    possible: 2 cores\
""")


def test_sessions_are_drawn_as_a_table() -> None:
    ended = {"started": NOW, "ended": NOW + timedelta(seconds=90)}
    views = [
        a_session(),
        a_session(phase="WAITING", started=None, start=NOW + timedelta(hours=2), nodes=("n1", "n2"), gpus=1),
        a_session(phase="FAILED", name="command", end=an_end(code=7, sentence="It exited with code 7."), **ended),
        a_session(phase="COMPLETED", end=an_end(code=0), **ended),
        a_session(phase="OFFERED", start=None, started=None),
        a_session(phase="PREPARING", started=None, condition="bringing cube (40 %)"),
    ]
    assert drawn(sessions.listed(views, NOW + timedelta(minutes=3))) == snapshot("""\
ID        NAME  KIND     PHASE      WHERE  CORES  MEMORY  GPUS  TIME                             NOTE
3f2a91c0  fit   command  RUNNING    here   2      2 GiB   -     for 3 min, 57 min left
3f2a91c0  fit   command  WAITING    here   2×2    2 GiB   1     starts in 1 h 57 min
3f2a91c0  -     command  FAILED     here   2      2 GiB   -     took 1 min 30 s, 1 min 30 s ago  It exited with code 7.
3f2a91c0  fit   command  COMPLETED  here   2      2 GiB   -     took 1 min 30 s, 1 min 30 s ago
3f2a91c0  fit   command  OFFERED    here   2      2 GiB   -     held, expires in 2 min
3f2a91c0  fit   command  PREPARING  here   2      2 GiB   -     due 3 min ago                    bringing cube (40 %)\
""")


def test_a_session_is_drawn_in_full() -> None:
    view = a_session(
        phase="AVAILABLE",
        kind="interactive",
        connectors=(
            ConnectorView(kind="uri:shell", status="AVAILABLE", protocol="ws", location="http://x/connect/y/"),
        ),
        page="http://x/web/sessions/y",
        costs=(QuoteView(type=MONEY, min=1.2, max=1.2, description="in EUR"),),
    )
    assert drawn(sessions.described(view, NOW + timedelta(minutes=3))) == snapshot("""\
session  3f2a91c0-0000-4000-8000-000000000001
name     fit
phase    AVAILABLE
kind     interactive, run by exec
where    here, n1
has      2 cores, 2 GiB for 1 h
terms    booked
costs    1.2 EUR
started  today 09:00 (3 min ago)
until    today 10:00 (in 57 min)
connect  http://x/connect/y/ (available)
page     http://x/web/sessions/y
person   ada\
""")


def test_ps_in_three_manners(type_in: Type, canned: Serve) -> None:
    now = datetime.now(NOW.tzinfo)
    fresh = a_session(phase="FAILED", ended=now, started=now, end=an_end(code=1))
    old = a_session(phase="FAILED", ended=now - timedelta(days=3), id="old", short="old")
    service = canned({"GET /v1/sessions": Said(SessionPage(items=(fresh, old)))})
    assert type_in("ps").out.splitlines()[1].startswith("3f2a91c0  fit   command  FAILED")
    assert type_in("ps", "--quiet").out == "3f2a91c0\n"
    assert [item["id"] for item in json.loads(type_in("--json", "ps").out)["items"]] == [ID]
    assert json.loads(type_in("ps", "--json", "--all").out)["items"][1]["id"] == "old"
    assert "phase=RUNNING&" in service.heard[0].target
    assert "phase=OFFERED" not in service.heard[0].target


def test_an_empty_list_is_empty_on_stdout(type_in: Type, canned: Serve) -> None:
    canned({"GET /v1/sessions": Said(SessionPage(items=()))})
    typed = type_in("ps")
    assert (typed.code, typed.out) == (0, "")
    assert "ps --all" in typed.err


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


def test_options_and_a_command_become_the_short_form(type_in: Type, canned: Serve, tmp_path: Path) -> None:
    service = canned({"POST /v1/offersets": Said(a_yes(an_offer()))})
    Path("sim.py").touch()
    Path("lib").mkdir()
    Path("lib/in.csv").touch()
    Path("run.sh").write_text("echo $((1+1))\n")
    words = ["--cores", "2-4", "--gpus", "1", "--time", "10m", "--start", "now", "--start", "tomorrow 09:00-10:00"]
    words += ["--env", "A=b=c", "--max-cost", "1.5", "--name", ";$(x)", "--data", "https://example.org:8080/x:in"]
    assert type_in("ask", *words, "--", "python3", "sim.py", "lib/in.csv", "/etc/hosts", "../x").code == 0
    here = tmp_path / "cwd"
    assert json.loads(service.heard[0].body) == {
        "run": ["python3", "sim.py", "lib/in.csv", "/etc/hosts", "../x"],
        "cores": "2-4",
        "gpus": 1,
        "time": "10m",
        "start": ["now", "tomorrow 09:00-10:00"],
        "env": {"A": "b=c"},
        "max_cost": 1.5,
        "name": ";$(x)",
        "data": [
            {"location": "https://example.org:8080/x", "path": "in"},
            {"location": str(here / "sim.py"), "path": "sim.py"},
            {"location": str(here / "lib/in.csv"), "path": "lib/in.csv"},
        ],
    }
    assert type_in("ask", "--script", "run.sh").code == 0
    assert json.loads(service.heard[1].body) == {"script": "echo $((1+1))\n"}
    assert type_in("ask", "--notebook", "https://example.org/n.ipynb", "--param", "n=3", "--param", "s=a b").code == 0
    assert json.loads(service.heard[2].body) == {
        "notebook": "https://example.org/n.ipynb",
        "parameters": {"n": 3, "s": "a b"},
    }
    assert "no notebook n.ipynb here" in type_in("ask", "--notebook", "n.ipynb").err


def test_a_document_comes_from_a_file_or_from_stdin(type_in: Type, canned: Serve) -> None:
    service = canned({"POST /v1/offersets": Said(a_yes(an_offer()))})
    Path("job.yaml").write_text("run: echo hello\ncores: 1\n")
    assert type_in("ask", "job.yaml", "--cores", "3").code == 0
    assert type_in("ask", "-", stdin="run: echo hello\n").code == 0
    assert type_in("ask", "job.yaml", "--", "echo", "other").code == 0
    sent = [json.loads(heard.body) for heard in service.heard]
    assert sent[0] == {"run": "echo hello", "cores": 3}
    assert sent[1] == {"run": "echo hello"}
    assert sent[2] == {"run": ["echo", "other"], "name": "echo other", "cores": 1}


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
    assert len(service.heard) == 1
    assert type_in("run", "--yes", "--detach", "-q", "--", "true").out == "3f2a91c0\n"


def test_the_other_commands_draw_what_they_are_told(type_in: Type, canned: Serve) -> None:
    node = NodeView(name="n1", cores=2, memory=4 * 1024**3)
    here = PlatformView(name="here", kind="local", terms="booked", nodes=(node,), tools={"sh": "/bin/sh"})
    canned(
        {
            f"POST /v1/sessions/{ID}/accept": Said(a_session()),
            f"POST /v1/sessions/{ID}/reject": Said(a_session(phase="REJECTED")),
            f"POST /v1/sessions/{ID}/cancel": Said(a_session(phase="CANCELLED")),
            f"POST /v1/sessions/{ID}/extend": Said(a_session()),
            f"POST /v1/sessions/{ID}/pause": Said(PauseView(session=a_session(), how="held in the queue")),
            f"POST /v1/sessions/{ID}/resume": Said(PauseView(session=a_session(), how="released in the queue")),
            f"DELETE /v1/sessions/{ID}": Said(b"", 204),
            f"GET /v1/sessions/{ID}": Said(a_session()),
            f"GET /v1/sessions/{ID}/explain": Said(Explanation(session=ID, phase="RUNNING", sentences=("It runs.",))),
            f"GET /v1/sessions/{ID}/results": Said(ResultList(items=(ResultFileView(path="o", size=3, modified=NOW),))),
            f"GET /v1/sessions/{ID}/results/o": Said(b"abc"),
            f"GET /v1/sessions/{ID}/archive": Said([b"tar"]),
            "GET /v1/platforms": Said(PlatformList(items=(here,))),
            "GET /v1/platforms/here": Said(here),
            "POST /v1/platforms/here/check": Said(CheckList(items=(CheckView(rule="r", ok=False, detail="d"),))),
            "POST /v1/tokens": Said(TokenView(id="77", person="ada", created=NOW, token="secret")),
            "GET /v1/events": [
                Said(
                    EventPage(
                        items=(
                            EventView(
                                id=1,
                                time=datetime(2024, 2, 29, 9, tzinfo=NOW.tzinfo),
                                session=ID,
                                person="a",
                                kind="session.accepted",
                            ),
                        )
                    )
                ),
                Said(EventPage(items=())),
            ],
        }
    )
    assert type_in("accept", ID).out.startswith("3f2a91c0 is accepted: on here, ")
    assert type_in("reject", ID).out == "3f2a91c0 is rejected.\n"
    assert type_in("cancel", ID).out == "3f2a91c0 is cancelled.\n"
    assert type_in("pause", ID).out == "3f2a91c0 is paused: held in the queue.\n"
    assert type_in("resume", ID).out == "3f2a91c0 goes on: released in the queue.\n"
    assert type_in("resume", ID, "-q").out == "3f2a91c0\n"
    assert type_in("extend", ID, "30m").out.startswith("3f2a91c0 has until ")
    assert type_in("delete", ID).out == f"{ID} is deleted.\n"
    assert type_in("status", ID, "-q").out == "RUNNING\n"
    assert type_in("explain", ID).out == "3f2a91c0 is RUNNING.\nIt runs.\n"
    assert type_in("result", ID, "-q").out == "o\n"
    assert type_in("result", ID, "o").out == "abc"
    assert type_in("result", ID, "--out", "there", "-q").out == "there/o\n"
    assert Path("there/o").read_bytes() == b"abc"
    assert type_in("result", ID, "--archive", "all.tar.gz").code == 0
    assert Path("all.tar.gz").read_bytes() == b"tar"
    assert type_in("platform", "list", "-q").out == "here\n"
    assert "n1: 2 cores, 4 GiB" in type_in("platform", "show", "here").out
    assert type_in("platform", "check", "here").code == 1
    assert type_in("token").out == "secret\n"
    assert type_in("events").out == "2024-02-29 09:00:00  3f2a91c0  session.accepted\n"


def test_a_path_that_leads_out_is_not_fetched(type_in: Type, canned: Serve) -> None:
    evil = ResultList(items=(ResultFileView(path="../evil", size=3, modified=NOW),))
    canned({f"GET /v1/sessions/{ID}/results": Said(evil)})
    typed = type_in("result", ID, "--out", "there")
    assert (typed.code, typed.out) == (1, "")
    assert "outside" in typed.err


def test_errors_are_told_with_a_hint_and_their_exit_code(type_in: Type, canned: Serve, tmp_path: Path) -> None:
    canned({"GET /v1/whoami": Said(b"", 401), "POST /v1/tokens": Said({"code": "not-signed-in", "detail": "No."}, 401)})
    refused = type_in("status", "ffff")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == "error: There is no /v1/sessions/ffff.\n\nhint: Look elsewhere.\n"
    assert type_in("status").code == 2
    assert type_in("run").code == 2
    assert type_in("run", "python3", "sim.py").code == 2
    assert type_in("ask", "nothing.yaml").code == 2
    assert type_in("token").code == 4


def test_a_service_that_is_not_there_is_exit_code_3(
    type_in: Type, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SUBLET_URL", f"unix://{tmp_path}/nothing.sock")
    typed = type_in("ps")
    assert (typed.code, typed.out) == (3, "")
    assert typed.err.startswith("error: No Sublet service answers at ")
    assert "\n\nhint: " in typed.err


def test_the_unexpected_is_told_without_a_traceback(type_in: Type, canned: Serve) -> None:
    canned({"GET /v1/sessions": Said({"items": "nonsense"})})
    typed = type_in("ps")
    assert (typed.code, typed.out) == (1, "")
    assert typed.err.startswith("error: something unexpected happened: ")
    assert "Traceback" not in typed.err


def test_the_doctor_finds_what_is_bad(type_in: Type, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    (home / "sublet.toml").write_text("hold = \n")
    typed = type_in("doctor", "-q")
    assert typed.code == 1
    assert "bad settings: " in typed.out
    assert "warn SUBLET_HOME: others can look into " in typed.out
    (home / "sublet.toml").unlink()
    home.chmod(0o700)
    good = json.loads(type_in("doctor", "--json").out)
    assert {"state": "ok", "what": "database", "detail": "made at the first start", "todo": ""} in good


def test_results_are_chosen_and_their_sizes_told_before_anything_is_fetched(type_in: Type, canned: Serve) -> None:
    files = [ResultFileView(path=path, size=1536, modified=NOW) for path in ("a.csv", "plots/b.png", "plots/c.png")]
    service = canned({f"GET /v1/sessions/{ID}/results": Said(ResultList(items=tuple(files)))})
    typed = type_in("result", ID, "plots", "--list")
    assert [line.split()[0] for line in typed.out.splitlines()] == ["FILE", "plots/b.png", "plots/c.png"]
    assert typed.err == f"2 files, 3 KiB. Fetch with: sublet result {ID} --out DIR\n"
    assert type_in("result", ID, "*.tar", "--list").code == 1
    assert {heard.target for heard in service.heard} == {f"/v1/sessions/{ID}/results"}


def test_whoever_reads_no_further_or_not_at_all_is_no_failure(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "sublet.cli", "system", "list"]
    read, write = os.pipe()
    os.close(read)
    shut = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (shut.returncode, shut.stderr) == (0, "")
    closed = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *words], stderr=subprocess.PIPE, text=True, check=False)
    assert (closed.returncode, closed.stderr) == (0, "")
    with open("/dev/full", "w") as full:
        told = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (told.returncode, told.stderr.splitlines()[0]) == (
        1,
        "error: Nothing more can be written: No space left on device.",
    )


def test_a_question_where_nobody_sits_is_told_with_what_to_do(canned: Serve, type_in: Type) -> None:
    canned({})
    typed = type_in("person", "totp", "off")
    assert (typed.code, typed.out) == (2, "")
    assert 'Nothing was typed at the question "Code"' in typed.err
    assert "--code" in typed.err


def test_a_provisioner_is_json_too(type_in: Type) -> None:
    assert json.loads(type_in("dag", "provisioner", "example", "--json").out)["submit"].endswith("queue\n")
