"""Sublet as an ordinary user runs it on a machine beside a site, of another system and Python than this one."""

from __future__ import annotations

import json

from tests.access_points import Person


def test_the_checkout_runs_there_with_all_its_kinds(person: Person) -> None:
    assert person.typed("--version").startswith("sublet ")
    listed = json.loads(person.typed("platform", "list", "--json"))
    assert {"here", person.site.name} <= {platform["name"] for platform in listed["items"]}
    assert person.does("touch", "/opt/sublet/src/mine").returncode != 0


def test_who_signed_in_there_gets_offers_of_the_site(person: Person) -> None:
    client = person.client()
    person.site.wait(lambda: client.ask(run=["true"], platform=person.site.name, time="1m").result == "YES", 90)


def test_a_service_there_is_killed_and_started_again(person: Person) -> None:
    before = json.loads(person.kept("run", "service.json").read_text())["pid"]
    person.kills_service()
    person.starts_service().health()
    after = json.loads(person.kept("run", "service.json").read_text())["pid"]
    assert not person.runs(before)
    assert person.runs(after)
