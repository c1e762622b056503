"""A program's own values in a request: paths, dates, arrays, data frames; and what a mistake is answered with."""

from __future__ import annotations

import json
import traceback
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet import AsyncClient, Client, NoOffers, NotOverYet
from sublet.booking.views.offers import ReasonView
from sublet.booking.views.sessions import SessionPage
from sublet.client.documents import document_of
from sublet.client.sweeps import make_bag, sweep_document
from sublet.kernel.errors import BadRequest, UnknownAnswer, UnusableHome
from tests.canned import ID, Canned, Heard, Said, a_no, a_session, a_yes, an_end, an_offer


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a program and its data."""
    for name in ("sim.py", "run.sh", "sub/x.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Makes a service that says these answers."""
    with ExitStack() as stack:
        yield lambda answers: stack.enter_context(Canned(answers).serving(tmp_path))


@pytest.mark.parametrize(
    "wishes",
    [
        {"run": ["python3", "sim.py"], "data": ["sub/x.csv"]},
        {"run": ["python3", "sim.py"], "data": "sub/x.csv", "workdir": "sub"},
        {"run": ["./run.sh", "sub/x.csv"]},
        {"run": ["cat"], "data": [{"location": "sub/x.csv", "path": "in.csv"}]},
        {"notebook": "sub/x.csv"},
        {"bag": {"template": ["cat", "{f}"], "grid": {"f": ["sub/x.csv"]}}},
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_path_means_what_its_text_means(wishes: dict[str, Any]) -> None:
    def as_paths(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: as_paths(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [as_paths(item, name) for item in value]
        return Path(value) if name != "path" and Path(value).exists() else value

    paths = as_paths(wishes)
    assert paths != wishes
    assert document_of(None, paths, local=True) == document_of(None, wishes, local=True)


@pytest.mark.usefixtures("folder")
def test_a_program_that_is_a_path_is_brought() -> None:
    for run in (Path("run.sh"), [Path("run.sh")], [Path("./run.sh")]):
        found = document_of(None, {"run": run}, local=True)
        assert found["run"] == ["./run.sh"]
        assert [item["path"] for item in found["data"]] == ["run.sh"]


def test_a_date_is_any_time_on_that_day() -> None:
    day = date.today() + timedelta(days=3)
    assert document_of(None, {"run": "true", "start": day}, local=True) == document_of(
        None, {"run": "true", "start": day.isoformat()}, local=True
    )
    instant = datetime(2030, 1, 1, tzinfo=UTC)
    assert document_of(None, {"run": "true", "start": instant}, local=True)["start"] is instant


def test_a_sweep_takes_arrays_paths_ranges_generators_and_a_line() -> None:
    bag = make_bag("python3 sim.py {x} {f}", {"x": array("l", [1, 2]), "f": (Path(name) for name in "ab")})
    assert bag["template"] == ["python3", "sim.py", "{x}", "{f}"]
    assert bag["grid"] == {"x": [1, 2], "f": ["a", "b"]}
    assert make_bag(["echo", 1, "{x}"], {"x": range(2)})["grid"] == {"x": [0, 1]}


def test_a_sweep_takes_a_data_frame() -> None:
    class Frame:  # what pandas and Polars have in common is a method that gives the rows
        def to_dict(self, orient: str) -> list[dict[str, Any]]:
            assert orient == "records"
            return [{"x": 1}, {"x": 2}]

    assert make_bag(["echo", "{x}"], table=Frame())["table"] == [{"x": 1}, {"x": 2}]


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: document_of(None, {"run": "true", "tiemout": 3}, local=True), "timeout"),
        (lambda: document_of(None, {"run": "true", "chose": 3}, local=True), "choose"),
        (lambda: sweep_document(["echo", "{x}"], {"x": [1]}, {"retires": 2}), "retries"),
        (lambda: document_of(["echo", "hi"], {}, local=True), 'run=["echo"'),  # type: ignore[arg-type]
        (lambda: document_of("echo hi", {}, local=True), 'run="echo'),
        (lambda: make_bag(["echo"]), "in Python a grid"),
    ],
)
def test_a_mistake_is_answered_with_what_to_write(call: Callable[[], object], hint: str) -> None:
    with pytest.raises(BadRequest) as caught:
        call()
    assert hint in caught.value.advice
    shown = "".join(traceback.format_exception(caught.value))
    assert f"hint: {caught.value.advice}" in shown, "a traceback that nobody catches has the hint too"


def test_a_field_that_only_the_service_knows_is_left_to_it() -> None:
    assert document_of(None, {"run": "true", "corse": 2}, local=True)["corse"] == 2


def test_no_offers_has_the_reasons(serve: Callable[..., str]) -> None:
    reason = ReasonView(kind="urn:x", field="compute.cores.min", message="Too many.", nearest="2", platform="here")
    client = Client(serve({"POST /v1/offersets": Said(a_no(reason))}))
    with pytest.raises(NoOffers) as caught:
        client.run(run="true")
    assert [(why.field, why.nearest, why.platform) for why in caught.value.reasons] == [
        ("compute.cores.min", "2", "here")
    ]
    assert NoOffers().reasons == ()


def test_choosing_nothing_is_a_mistake_that_says_so(serve: Callable[..., str]) -> None:
    view = a_yes(an_offer())
    url = serve({"POST /v1/offersets": Said(view), f"DELETE /v1/offersets/{view.id}": Said({"offers": 1})})
    with pytest.raises(BadRequest, match="`choose` returned None"):
        Client(url).run(run="true", choose=lambda offers: None)  # type: ignore[arg-type,return-value]


def test_results_and_timeouts_take_paths_and_durations(serve: Callable[..., str]) -> None:
    url = serve({f"GET /v1/sessions/{ID}": Said(a_session()), f"GET /v1/sessions/{ID}/results/d/a%20b.txt": Said(b"x")})
    session = Client(url).session(ID)
    assert session.result(Path("d/a b.txt")) == b"x"
    with pytest.raises(NotOverYet, match=r"after 0\.01 s"):
        session.wait(timedelta(milliseconds=10))


def many_sessions(heard: Heard) -> Said:
    """Pages of sessions without an end."""
    size = int(heard.target.partition("limit=")[2].partition("&")[0])
    assert "phase=completed" not in heard.target
    return Said(SessionPage(items=tuple(a_session() for _ in range(size)), next="more"))


@pytest.mark.parametrize("limit", [0, 1, 3, 100, 150])
def test_limit_is_how_many_sessions_come(serve: Callable[..., str], limit: int) -> None:
    url = serve({"GET /v1/sessions": many_sessions})
    assert len(list(Client(url).sessions(limit=limit, phase="completed"))) == limit


@pytest.mark.anyio
async def test_limit_is_how_many_sessions_come_without_waiting(serve: Callable[..., str]) -> None:
    async with AsyncClient(serve({"GET /v1/sessions": many_sessions})) as client:
        assert len([session async for session in client.sessions(limit=3)]) == 3


def test_a_session_and_a_client_say_what_they_are(serve: Callable[..., str]) -> None:
    failed = a_session(phase="FAILED", end=an_end(code=2))
    url = serve({f"GET /v1/sessions/{ID}": Said(failed)})
    client = Client(url, token="secret")
    session = client.session(ID)
    assert failed.end is not None
    assert repr(session) == f"<session {ID[:8]}: FAILED: {failed.end.sentence}>"
    assert session.platform == "here"
    assert repr(client) == f"<Client of {url.removeprefix('unix://')}>"
    assert "secret" not in repr(client)


def test_pieces_of_logs_are_never_empty(serve: Callable[..., str]) -> None:
    ended = {"sublet-ended": "true"}
    url = serve(
        {
            f"GET /v1/sessions/{ID}": Said(a_session()),
            f"GET /v1/sessions/{ID}/logs": [Said(b"one\n", headers=ended), Said(b"", headers=ended)],
        }
    )
    assert list(Client(url).session(ID).logs()) == ["one\n"]


def test_a_request_is_sent_as_plain_json(serve: Callable[..., str], tmp_path: Path) -> None:
    heard: list[Heard] = []
    url = serve({"POST /v1/offersets": lambda said: heard.append(said) or Said(a_yes(an_offer()))})
    Client(url).ask(run=["python3", tmp_path / "x.py", 1, 2.5], time=timedelta(minutes=1), env={"N": 3})
    assert json.loads(heard[0].body)["run"] == ["python3", str(tmp_path / "x.py"), 1, 2.5]


@pytest.mark.parametrize(
    "said",
    [
        Said(b"<html>Sign in to the network</html>", headers={"content-type": "text/html"}),
        Said({"status": "ok"}),
        Said([1]),
        Said(b""),
    ],
)
def test_an_answer_of_something_else_is_named(serve: Callable[..., str], said: Said) -> None:
    client = Client(serve({"GET /health": said, "GET /v1/sessions": said, "POST /v1/offersets": said}))
    calls: list[Callable[[], object]] = [client.health, lambda: list(client.sessions()), lambda: client.ask(run="a")]
    for call in calls:
        with pytest.raises(UnknownAnswer, match="This version of Sublet doesn't understand the answer") as caught:
            call()
        assert "Check the address" in caught.value.advice


@pytest.mark.parametrize("place", ["/proc/sublet", "{folder}/sim.py/home"])
def test_a_home_that_cannot_be_made_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    home = place.format(folder=folder)
    monkeypatch.delenv("SUBLET_URL", raising=False)
    monkeypatch.setenv("SUBLET_HOME", home)
    with pytest.raises(UnusableHome, match=home) as caught:
        Client().health()
    assert "mkdir -m 700" in caught.value.advice
