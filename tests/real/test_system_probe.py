"""A live system beside what was known of it: read over the person's own login, and kept for later checks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.real.researchers import Researcher, at
from tests.sites import Site


@pytest.fixture(scope="module")
def researcher(tmp_path_factory: pytest.TempPathFactory, site: Site) -> Iterator[Researcher]:
    with at(site, tmp_path_factory.mktemp("probe") / "home") as person:
        person.serving.start()
        yield person


def said(researcher: Researcher, *words: str) -> Any:
    done = researcher.types("system", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_probe_needs_a_login(researcher: Researcher, site: Site) -> None:
    refused = researcher.types("system", "probe", site.name)
    assert refused.returncode == 4, refused.stderr
    assert f"hint: sublet system login {site.name}" in refused.stderr


def test_a_probe_reads_the_live_queues_and_saving_them_makes_checks_know_them(
    researcher: Researcher, site: Site
) -> None:
    assert researcher.signs_in() == 0, researcher.said
    drawn = researcher.types("system", "probe", site.name)
    assert drawn.returncode == 0, drawn.stderr
    assert "not known" in drawn.stdout
    names = set(site.on("researcher@login", "sinfo", "--noheader", "--format=%R").split())
    view = said(researcher, "probe", site.name, "--save")
    assert {queue["name"] for queue in view["queues"]} == names
    assert {one["state"] for one in view["differences"] if one["subject"].startswith("queue")} == {"unknown"}
    file = researcher.serving.home / "systems" / f"{site.name}.yaml"
    assert "user: researcher" in file.read_text()
    queue = view["queues"][0]
    wide = researcher.types("system", "check", site.name, "--queue", queue["name"], "--cores", "100000", "--json")
    assert wide.returncode == 1, wide.stdout
    again = said(researcher, "probe", site.name)
    assert {one["state"] for one in again["differences"] if one["what"].endswith(" of a node")} == {"same"}


def test_the_record_is_shown_beside_the_facts(researcher: Researcher, site: Site) -> None:
    assert said(researcher, "show", site.name)["record"]["items"] == []
    assert "no track record" in researcher.types("system", "show", site.name).stdout
