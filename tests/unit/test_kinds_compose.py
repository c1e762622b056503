"""Rules of Compose files: what is read of them, what is refused with words, and where they can run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sublet.booking.model.request import Compute, Executable, Request
from sublet.kinds.compose import COMPOSE
from sublet.kinds.compose_file import BadCompose, ComposeVolume, read_compose
from tests.unit.test_kinds import setting

FILE = """
version: "3.8"
services:
  web:
    image: ghcr.io/owner/web:1
    command: serve --name "a b"
    environment: ["MODE=${MODE:-fast}", "PRICE=5$$", TOKEN]
    depends_on: {db: {condition: service_started}, load: {condition: service_completed_successfully}}
    ports: ["8080:80"]
    volumes: ["./out:/out", "cache:/cache:ro"]
  load: {image: "ghcr.io/owner/load:1", depends_on: [db], restart: "no"}
  db: {image: "docker.io/library/postgres:16@sha256:%s", environment: {POSTGRES_PASSWORD: 1}}
volumes: {cache: }
""" % ("a" * 64)


def compose(file: Any = FILE, **fields: Any) -> Executable:
    return Executable("docker-compose", fields={"compose": file, **fields})


def test_services_come_after_those_that_they_wait_for_and_variables_are_filled_in() -> None:
    db, load, web = read_compose(FILE, {"TOKEN": "t"})
    assert [service.name for service in (db, load, web)] == ["db", "load", "web"]
    assert web.command == ("serve", "--name", "a b")
    assert web.environment == {"MODE": "fast", "PRICE": "5$", "TOKEN": "t"}
    assert web.after == {"db": "service_started", "load": "service_completed_successfully"}
    assert web.port == 80
    assert web.volumes == (ComposeVolume("out", "/out"), ComposeVolume("cache", "/cache", True, is_named=True))
    assert db.environment == {"POSTGRES_PASSWORD": "1"}


@pytest.mark.parametrize(
    ("service", "words"),
    [
        ({"build": "."}, "build can't be done here"),
        ({"image": "a:1", "privileged": True}, "privileged can't be done here"),
        ({"image": "a:1", "network_mode": "host"}, "network_mode can't be done here"),
        ({"image": "a:1", "volumes": ["/etc:/host"]}, "below the working directory"),
        ({"image": "a:1", "volumes": ["./../../etc:/host"]}, "below the working directory"),
        ({"image": "a:1", "volumes": ["~/x:/host"]}, "below the working directory"),
        ({"image": "a:1", "volumes": ["undeclared:/x"]}, "below the working directory"),
        ({"image": "a:1", "volumes": ["./a,ro:/x"]}, "can't be mounted"),
        ({"image": "a:1", "volumes": ["./a:/x/../y"]}, "can't be mounted"),
        ({"image": "a:1", "restart": "always"}, "nothing is started again"),
        ({"image": "a:1", "ports": ["80", "81"]}, "only one port"),
        ({"image": "a:1", "ports": ["80-90"]}, "is no port"),
        ({"image": "a:1", "depends_on": ["other"]}, "there is no service other"),
        ({"image": "a:1", "depends_on": ["one"]}, "wait for one another: one"),
        ({"image": "a:1", "depends_on": {"one": {"condition": "service_healthy"}}}, "can't be waited for"),
        ({"image": "a:1", "command": "${UNSET}"}, "$UNSET is used, and not set"),
        ({"image": "a:1", "command": "'open"}, "can't be told apart"),
        ({}, "needs an image"),
        ("text", "is no service"),
    ],
)
def test_what_can_not_be_done_is_refused_with_words(service: Any, words: str) -> None:
    with pytest.raises(BadCompose) as wrong:
        read_compose({"services": {"one": service}}, {})
    assert words in wrong.value.message
    (reason,) = COMPOSE.check(compose({"services": {"one": service}}), Request(compose(), Compute()))
    assert reason.field.startswith("executable.compose.")


@pytest.mark.parametrize(
    "file", ["", "just text", "a: [", {}, {"services": {}}, {"networks": {}, "services": {}}, None]
)
def test_what_is_no_compose_file_is_refused(file: Any) -> None:
    assert COMPOSE.check(compose(file), Request(compose(), Compute()))


def test_it_runs_by_podman_alone_and_every_other_way_says_why_not() -> None:
    (way,) = COMPOSE.ways(compose(TOKEN=""), {"python3": "", "podman": "", "docker": "", "kubernetes": ""})
    assert (way.name, way.contained, way.interactive) == ("podman", True, True)
    assert not COMPOSE.ways(compose(), {"kubernetes": "", "docker": "", "python3": ""})
    needs = {need.name: need for need in COMPOSE.list_needs(compose())}
    assert set(needs) == {"podman", "apptainer", "docker", "charliecloud", "kubernetes"}
    assert "only Podman" in needs["kubernetes"].lacks
    here = compose({"services": {"one": {"image": "docker-archive:/home/ann/a.tar"}}})
    (way,) = COMPOSE.ways(here, {"python3": "", "podman": ""})
    assert not way.contained, "an image among the account's own files is not for strangers"


def test_values_are_in_no_words_and_each_service_has_a_place_of_its_own() -> None:
    (way,) = COMPOSE.ways(compose(environment={"TOKEN": "polonium"}), {"python3": "", "podman": "/usr/bin/podman"})
    program = way.program(setting())
    assert "polonium" not in " ".join(program.argv)
    plan = json.loads(program.files[".sublet/compose.json"])
    assert len({service[key] for service in plan["services"] for key in ("name", "private", "work", "image")}) == 12
    assert plan["holder"]["port"] == 80
    assert program.connects == "uri:http"
