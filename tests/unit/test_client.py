"""The client that waits: calls, errors, following, and what it makes of answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sublet.access.views.access import AccessList, AccessView, LimitsView
from sublet.access.views.accounts import AccountList, AccountView
from sublet.access.views.usage import UsageReport, UsedView
from sublet.apps.calls.apps import propose
from sublet.apps.views.apps import ProposeAsk
from sublet.booking.views.moves import PauseView
from sublet.booking.views.offers import ReasonView
from sublet.booking.views.results import ResultFileView, ResultList
from sublet.booking.views.sessions import SessionPage
from sublet.client import Client
from sublet.client.address import Address, find_address
from sublet.client.call import Call, as_bytes, body_of
from sublet.client.following import TRIES, Patience, until_over
from sublet.client.link import unreachable
from sublet.client.waiting import carry_out
from sublet.kernel.errors import (
    BadRequest,
    ClientClosed,
    NoOffers,
    NotFound,
    NotOverYet,
    NotSignedIn,
    OfferExpired,
    ServiceUnreachable,
    SubletError,
)
from tests.canned import ID, NOW, Canned, Said, a_no, a_session, a_yes, an_end, an_offer

Serve = Callable[..., tuple[Client, Canned]]
DONE = a_session(phase="COMPLETED", end=an_end(code=0))


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Makes a service that says these answers, and a client of it."""
    with ExitStack() as stack:

        def made(answers: Any) -> tuple[Client, Canned]:
            canned = Canned(answers)
            return Client(stack.enter_context(canned.serving(tmp_path))), canned

        yield made


def test_a_closed_client_says_that_it_is_closed(serve: Serve) -> None:
    client, _ = serve({f"GET /v1/sessions/{ID}": Said(a_session())})
    with client:
        session = client.session(ID)
    for use in (client.health, session.refresh, session.wait, lambda: client.ask(run="true")):
        with pytest.raises(ClientClosed, match="This client was closed"):
            use()
    with pytest.raises(ClientClosed):
        next(session.logs(follow=True))
    client.close()


def test_an_offer_is_accepted_by_its_id(serve: Serve) -> None:
    client, canned = serve(
        {"POST /v1/offersets": Said(a_yes(an_offer())), f"POST /v1/sessions/{ID}/accept": Said(a_session())}
    )
    offers = client.ask(cores=2, time="10m", run=["python3", "-m", "sim"])
    assert (offers.result, len(offers), offers[0].why) == ("YES", 1, "earliest")
    session = offers[0].accept()
    assert (session.id, session.phase, session.over) == (ID, "RUNNING", False)
    assert json.loads(canned.heard[0].body) == {
        "cores": 2,
        "time": "10m",
        "run": ["python3", "-m", "sim"],
        "name": "python3 -m sim",
    }


def test_a_pause_says_how_and_what_the_session_is_then(serve: Serve) -> None:
    client, _ = serve(
        {
            f"GET /v1/sessions/{ID}": Said(a_session()),
            f"POST /v1/sessions/{ID}/pause": Said(PauseView(session=a_session(condition="paused: held"), how="held")),
            f"POST /v1/sessions/{ID}/resume": Said(PauseView(session=a_session(), how="released")),
        }
    )
    session = client.session(ID)
    assert (session.pause(), session.condition) == ("held", "paused: held")
    assert (session.resume(), session.condition) == ("released", "")


def test_taking_an_offer_of_none_tells_the_reasons(serve: Serve) -> None:
    reason = ReasonView(kind="urn:resource-limit", field="compute.cores", message="Too many cores.", nearest="2 cores")
    client, _ = serve({"POST /v1/offersets": Said(a_no(reason))})
    offers = client.ask({"cores": 99, "run": "true"})
    assert (offers.result, list(offers), offers.reasons) == ("NO", [], (reason,))
    with pytest.raises(NoOffers, match="Too many cores") as caught:
        _ = offers[0]
    assert "2 cores" in caught.value.advice


def test_yaml_text_and_files_are_documents_with_words_put_over_them(serve: Serve, tmp_path: Path) -> None:
    client, canned = serve({"POST /v1/offersets": Said(a_yes(an_offer()))})
    (tmp_path / "job.yaml").write_text("run: echo hello\ncores: 1\ndata: [cube.fits]\n")
    (tmp_path / "cube.fits").touch()
    client.ask(tmp_path / "job.yaml", cores=4)
    client.ask("run: echo hello\ntime: 5m\n")
    sent = [json.loads(heard.body) for heard in canned.heard]
    data = [{"location": str(tmp_path / "cube.fits"), "path": "cube.fits", "writable": True}]
    assert sent[0] == {"run": "echo hello", "cores": 4, "data": data, "name": "job"}
    assert sent[1] == {"run": "echo hello", "time": "5m", "name": "echo hello"}


def test_a_sweep_is_asked_for_as_a_bag_and_its_table_is_read_from_what_it_left(serve: Serve) -> None:
    record = b'{"task": 0, "code": 0, "seconds": 1.0, "parameters": {"a": 1}, "stdout": [0, 5]}\n'
    files = tuple(ResultFileView(path=name, size=5, modified=NOW) for name in ("tasks.jsonl", "tasks.out"))
    client, canned = serve(
        {
            "POST /v1/offersets": Said(a_yes(an_offer())),
            f"GET /v1/sessions/{ID}": Said(a_session()),
            f"GET /v1/sessions/{ID}/results": Said(ResultList(items=files, size=10)),
            f"GET /v1/sessions/{ID}/results/tasks.jsonl": Said(record),
            f"GET /v1/sessions/{ID}/results/tasks.out": Said(b"done\n"),
        }
    )
    client.sweep(["fit", "{a}"], {"a": [1]}, cores=2, keep_offers=True)
    sent = json.loads(canned.heard[0].body)
    assert sent["bag"] == {"template": ["fit", "{a}"], "strict": True, "grid": {"a": [1]}}
    assert sent["cores"] == 2
    assert client.session(ID).table() == [{"task": 0, "a": 1, "exit_code": 0, "seconds": 1.0, "output": "done"}]


def test_words_can_not_be_put_over_a_full_document(serve: Serve) -> None:
    client, canned = serve({})
    with pytest.raises(BadRequest, match="cores"):
        client.ask({"executable": {"kind": "urn:x"}}, cores=4)
    assert canned.heard == []


def test_a_problem_becomes_the_error_that_it_names(serve: Serve) -> None:
    problem = {"code": "offer-expired", "detail": "It was held until noon.", "hint": "Ask again.", "status": 409}
    client, _ = serve({f"GET /v1/sessions/{ID}": Said(problem, 409), "GET /v1/whoami": Said(b"no", 401)})
    with pytest.raises(OfferExpired, match="held until noon") as caught:
        client.session(ID)
    assert caught.value.advice == "Ask again."
    with pytest.raises(NotSignedIn):
        client.whoami()
    with pytest.raises(NotFound):
        client.session("ffff")


def test_an_error_of_unknown_name_is_still_told(serve: Serve) -> None:
    client, _ = serve({"GET /health": Said({"code": "strange", "detail": "The moon is full."}, 500)})
    with pytest.raises(SubletError, match="The moon is full"):
        client.health()


def test_a_service_that_fails_still_tells_how_it_is(serve: Serve) -> None:
    failing = {"status": "failing", "version": "1", "mode": "personal", "problem": "the database can't be used"}
    client, _ = serve({"GET /health": Said(failing, 503, {"Content-Type": "application/json"})})
    assert (client.health().status, client.health().problem) == ("failing", "the database can't be used")


def test_wait_returns_when_it_is_over_and_the_session_knows_its_end(serve: Serve) -> None:
    client, _ = serve({f"GET /v1/sessions/{ID}": [Said(a_session()), Said(a_session(phase="RELEASING")), Said(DONE)]})
    session = client.session(ID)
    assert session.wait() is session
    assert (session.phase, session.exit_code, session.over) == ("COMPLETED", 0, True)


def test_wait_gives_up_after_its_time(serve: Serve) -> None:
    client, _ = serve({f"GET /v1/sessions/{ID}": Said(a_session())})
    with pytest.raises(NotOverYet, match="RUNNING"):
        client.session(ID).wait(timeout=0.01)


def test_following_goes_on_where_a_lost_connection_stopped(serve: Serve) -> None:
    ended = {"Sublet-Ended": "true"}

    def logs(heard: Any) -> Said:
        if "follow=true" not in heard.target:
            return Said(b"", headers=ended)
        if "offset=" not in heard.target or "offset=0" in heard.target:
            return Said([b"one ", "tw\N{CURRENCY SIGN}".encode()[:3]], cut=True)
        return Said(["\N{CURRENCY SIGN}".encode()[1:], b" three"])

    client, canned = serve({f"GET /v1/sessions/{ID}": Said(a_session()), f"GET /v1/sessions/{ID}/logs": logs})
    assert "".join(client.session(ID).logs(follow=True)) == "one tw\N{CURRENCY SIGN} three"
    assert any("offset=7" in heard.target for heard in canned.heard)


def test_following_does_not_stop_when_a_stream_ends_before_the_session(serve: Serve) -> None:
    streams = [Said([b"a"]), Said([b"b"])]
    rests = [Said(b"", headers={"Sublet-Ended": "false"}), Said(b"!", headers={"Sublet-Ended": "true"})]
    client, _ = serve(
        {
            f"GET /v1/sessions/{ID}": Said(a_session()),
            f"GET /v1/sessions/{ID}/logs": lambda heard: (streams if "follow" in heard.target else rests).pop(0),
        }
    )
    assert "".join(client.session(ID).logs(follow=True)) == "ab!"


def test_results_are_bytes_that_can_be_saved(serve: Serve, tmp_path: Path) -> None:
    files = ResultList(items=(ResultFileView(path="a b/out.csv", size=4, modified=NOW),))
    client, _ = serve(
        {
            f"GET /v1/sessions/{ID}": Said(DONE),
            f"GET /v1/sessions/{ID}/results": Said(files),
            f"GET /v1/sessions/{ID}/results/a%20b/out.csv": Said(b"1,2\n"),
            f"GET /v1/sessions/{ID}/archive": Said([b"tar", b"ball"]),
        }
    )
    session = client.session(ID)
    assert [file.path for file in session.results()] == ["a b/out.csv"]
    result = session.result("a b/out.csv")
    result.save(tmp_path / "here.csv")
    session.archive(tmp_path / "all.tar.gz")
    assert (result, result.text()) == (b"1,2\n", "1,2\n")
    assert (tmp_path / "here.csv").read_bytes() == b"1,2\n"
    assert (tmp_path / "all.tar.gz").read_bytes() == b"tarball"


def test_sessions_are_listed_page_after_page(serve: Serve) -> None:
    pages = [Said(SessionPage(items=(a_session(),), next="cursor")), Said(SessionPage(items=(DONE,)))]
    client, canned = serve({"GET /v1/sessions": pages})
    assert [session.phase for session in client.sessions(active=True)] == ["RUNNING", "COMPLETED"]
    assert "after=cursor" in canned.heard[1].target
    assert "active=true" in canned.heard[1].target


def test_a_session_that_nobody_serves_is_unreachable_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(ServiceUnreachable, match="No Sublet service answers") as caught:
        Client(f"unix://{tmp_path}/nothing.sock").health()
    assert "sublet up" in caught.value.advice


def test_a_socket_with_a_long_path_is_reached(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    short = tmp_path / "s"
    short.symlink_to(deep)
    with Canned({"GET /health": Said({"status": "ok", "version": "1", "mode": "personal"})}).serving(short):
        assert Client(f"unix://{deep}/canned.sock").health().status == "ok"


def test_the_address_comes_from_the_argument_then_the_environment_then_the_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SUBLET_HOME", str(tmp_path))
    monkeypatch.delenv("SUBLET_URL", raising=False)
    own = find_address()
    assert (own.socket, own.home is not None, own.local) == (f"{tmp_path}/run/sublet.sock", True, True)
    monkeypatch.setenv("SUBLET_URL", "https://sublet.example.org/base/")
    monkeypatch.setenv("SUBLET_TOKEN", "secret")
    gateway = find_address()
    assert (gateway.text, gateway.token, gateway.local) == ("https://sublet.example.org:443/base", "secret", False)
    assert find_address("http://[::1]:8080").text == "http://::1:8080"
    for wrong in ("sublet.example.org", "ftp://x", "http://", "http://x:port"):
        with pytest.raises(BadRequest):
            find_address(wrong)


def test_values_are_quoted_in_paths_and_queries_and_never_become_headers() -> None:
    call: Call[bytes] = Call(
        "GET", "/v1/x", as_bytes, query={"name": "a b;$(x)&y=\n", "none": None, "many": ["A", "B"]}
    )
    assert call.target == "/v1/x?name=a%20b%3B%24%28x%29%26y%3D%0A&many=A&many=B"
    assert call.headers("t")["Authorization"] == "Bearer t"


def test_what_one_may_use_of_a_gateway_is_asked_in_one_word(serve: Serve) -> None:
    view = AccessView(
        noun="account",
        name="keeling",
        allowed=True,
        why="rule 1 allows *",
        limits=LimitsView(cores=4),
        jobs=1,
        hours=2.5,
    )
    client, _ = serve({"GET /v1/access": Said(AccessList(person="anna@illinois.edu", items=(view,)))})
    assert client.access() == (view,)


def test_accounts_and_what_was_used_of_them_are_views(serve: Serve) -> None:
    account = AccountView(name="keeling", capacity=10, there=2)
    used = UsedView(quarter="2026Q4", platform="keeling", person="anna@illinois.edu", sessions=3, core_hours=1.5)
    report = UsageReport(since=NOW, until=NOW, items=(used,), totals=())
    answers = {"GET /v1/accounts": Said(AccountList(items=(account,))), "GET /v1/usage": Said(report)}
    client, _ = serve(answers)
    assert client.accounts() == (account,)
    assert client.usage(quarter="2026Q4") == report


def test_what_takes_too_long_may_still_be_done() -> None:
    told = unreachable(Address(scheme="https", host="gateway.example.org", port=443), TimeoutError())
    assert "took too long" in told.message
    assert "may still have been carried out" in told.advice
    lost = unreachable(Address(host="gateway.example.org"), ConnectionResetError())
    assert ("was lost" in lost.message, lost.advice) == (True, told.advice)
    assert propose(ProposeAsk(repository="https://github.com/owner/name")).patience > 120


class Listed:
    """As NumPy's numbers and arrays are."""

    def tolist(self) -> list[int]:
        return [1, 2]


def test_values_of_others_are_sent_as_what_they_hold_or_refused_in_words() -> None:
    assert json.loads(body_of({"a": Listed(), "b": Path("x/y")})) == {"a": [1, 2], "b": "x/y"}
    with pytest.raises(BadRequest, match="of type object can't be sent"):
        body_of({"a": object()})


class Restarting:
    """A way to a service that is away twice, and then there."""

    def __init__(self) -> None:
        self.away, self.done = 2, 0

    def do(self, call: Call[Any]) -> Any:
        if self.away:
            self.away -= 1
            raise ServiceUnreachable(address="https://gateway.example.org", why="Connection refused")
        self.done += 1
        return DONE


def test_who_waits_for_a_session_waits_for_a_service_that_is_restarted_too() -> None:
    link = Restarting()
    assert carry_out(link, until_over(ID, 20)).phase == "COMPLETED"  # type: ignore[arg-type]
    assert (link.away, link.done) == (0, 1)
    patience, gone = Patience(), ServiceUnreachable(address="x", why="y")
    assert sum(patience.broke(gone).seconds for _ in range(TRIES)) > 20
    with pytest.raises(ServiceUnreachable):
        patience.broke(gone)
