"""`sublet app run`: what is typed is what is asked for."""

from __future__ import annotations

import json

import pytest

from sublet.booking.model.scheduler import scheduler_specs
from tests.canned import ID, Said, a_no, a_session, a_yes, an_offer
from tests.cli.conftest import Serve, Type

ASK = "POST /v1/offersets/apps/summa"


def test_values_data_and_resources_are_sent_as_typed_and_the_offer_is_taken(type_in: Type, canned: Serve) -> None:
    service = canned({ASK: Said(a_yes(an_offer()), 201), f"POST /v1/sessions/{ID}/accept": Said(a_session())})
    words = ("--hpc", "keeling", "--set", "a=0", "--set", "text=x=y", "--set-json", "b=[1, 2]", "--cores", "4")
    more = ("--data", "forcing=https://example.org/f.nc?a=b", "--time", "2h", "--detach", "--yes")
    typed = type_in("app", "run", "summa@3", *words, *more, "-q")
    assert (typed.code, typed.out) == (0, f"{ID[:8]}\n")
    assert json.loads(service.heard[0].body) == {
        "version": "3",
        "hpc": "keeling",
        "name": "",
        "words": {"a": "0", "text": "x=y"},
        "set": {"b": [1, 2]},
        "data": {"forcing": "https://example.org/f.nc?a=b"},
        "resources": {"cores": 4, "time": "2h"},
        "scheduler": {},
        "places": [],
        "outputs": [],
    }


def test_an_app_asks_a_scheduler_by_the_same_options_as_any_request(type_in: Type, canned: Serve) -> None:
    service = canned({ASK: Said(a_yes(an_offer()), 201)})
    words = ("--constraint", "gpu", "--nice", "5", "--exclusive", "--option", "switches=1", "--option", "--contiguous")
    assert type_in("app", "run", "summa", *words, "--ask", "-q").code == 0
    assert json.loads(service.heard[0].body)["scheduler"] == {
        "constraint": "gpu",
        "nice": 5,
        "exclusive": True,
        "options": {"switches": "1", "contiguous": True},
    }
    shown = type_in("app", "run", "--help").out
    assert [spec.flag_name for spec in scheduler_specs().values() if spec.flag_name not in shown] == []


def test_a_place_without_a_name_is_the_whole_folder(type_in: Type, canned: Serve) -> None:
    service = canned({ASK: Said(a_yes(an_offer()), 201)})
    assert type_in("app", "run", "summa", "--data", "https://example.org/d?x=1", "--ask", "-q").code == 0
    assert json.loads(service.heard[0].body)["data"] == {"": "https://example.org/d?x=1"}
    assert len(service.heard) == 1


def test_a_no_is_told_with_its_reasons(type_in: Type, canned: Serve) -> None:
    canned({ASK: Said(a_no(), 201)})
    assert type_in("app", "run", "summa").code == 1


@pytest.mark.parametrize("words", [("--set", "a"), ("--set-json", "a=["), ()])
def test_a_mistake_is_told(type_in: Type, words: tuple[str, ...]) -> None:
    assert type_in("app", "run", *(("summa", *words) if words else ())).code == 2
